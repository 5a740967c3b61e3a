"""Bodies from standard input and files, line by line, without ever holding the event loop up.

A thread reads: input may be a terminal, a pipe or a file, and only threads can wait for all of them. It reads ahead a
few blocks and no more.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Final

from skyrocket.errors import ConfigError

STANDARD_INPUT: Final = 0
_BLOCK: Final = 1 << 16
_BLOCKS_AHEAD: Final = 16
LONGEST_LINE: Final = 64 << 20


async def lines_of(descriptor: int, name: str) -> AsyncIterator[tuple[int, bytes]]:
    """Lines with their numbers, without their ends; empty ones are left out. Raises ConfigError."""
    rest, number = bytearray(), 0
    async for block in _blocks(descriptor, name):
        rest += block
        if b"\n" not in block:
            if len(rest) > LONGEST_LINE:
                raise ConfigError(f"{name}: line {number + 1} is longer than {LONGEST_LINE >> 20} MiB")
            continue
        *lines, last = bytes(rest).split(b"\n")
        rest = bytearray(last)
        for line in lines:
            number += 1
            if line := line.removesuffix(b"\r"):
                yield number, line
    if rest:
        yield number + 1, bytes(rest)


async def whole(descriptor: int, name: str) -> bytes:
    """A whole input as one body; raises ConfigError."""
    content = bytearray()
    async for block in _blocks(descriptor, name):
        content += block
        if len(content) > LONGEST_LINE:
            raise ConfigError(f"{name} is longer than {LONGEST_LINE >> 20} MiB: no broker takes such a message")
    return bytes(content)


async def _blocks(descriptor: int, name: str) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    blocks: asyncio.Queue[bytes | OSError] = asyncio.Queue(_BLOCKS_AHEAD)

    def read() -> None:
        # os.read, not sys.stdin: a thread that waits inside sys.stdin keeps the interpreter from ending.
        block: bytes | OSError = b"?"
        with contextlib.suppress(RuntimeError, CancelledError):  # the loop has ended, nobody wants more
            while block:
                try:
                    block = os.read(descriptor, _BLOCK)
                except OSError as error:
                    block = error
                asyncio.run_coroutine_threadsafe(blocks.put(block), loop).result()
                if isinstance(block, OSError):
                    return

    threading.Thread(target=read, name=f"read {name}", daemon=True).start()
    while block := await blocks.get():
        if isinstance(block, OSError):
            raise ConfigError(f"{name} cannot be read: {block.strerror or block}")
        yield block


@contextlib.contextmanager
def opened(path: Path) -> Iterator[tuple[int, str]]:
    """A file's descriptor and name; `-` is standard input. Raises ConfigError."""
    if str(path) == "-":
        yield STANDARD_INPUT, "standard input"
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    try:
        yield descriptor, str(path)
    finally:
        os.close(descriptor)
