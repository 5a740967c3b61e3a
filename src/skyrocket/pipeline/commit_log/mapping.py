"""A log file as memory. The map keeps the file's bytes for as long as they are used, even when retention deletes it."""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from skyrocket.format.record import Buffer


@contextmanager
def mapped(path: Path | str) -> Iterator[Buffer]:
    """The bytes of a file, read-only."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if os.fstat(descriptor).st_size == 0:  # an empty file cannot be mapped
            yield b""
            return
        memory = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
    finally:
        os.close(descriptor)  # the map has its own
    memory.madvise(mmap.MADV_SEQUENTIAL)
    try:
        yield memory
    finally:
        with suppress(BufferError):  # columns may still point into it; it goes with the last of them
            memory.close()
