"""Ports for servers that must know theirs before they start, or have the same again after a kill.

They lie below those that the kernel gives to connections, or one of these might take a port while its server is away,
and below those that brokers choose for themselves. A port belongs to the process that chose it: it holds a lock on
that byte of a file that all tests of this machine share, and the kernel gives it back when the process ends.
"""

import contextlib
import fcntl
import functools
import os
import random
import socket
import tempfile
from collections import deque
from pathlib import Path
from typing import Final

_APART: Final = 4
_PORTS: Final = range(12_000, 20_000, _APART)
# A broker also takes the port two below for urgent requests, and the next one for its slaves.
_NEIGHBOURS: Final = (-2, 0, 1)
_LOCKS: Final = Path(tempfile.gettempdir()) / f"skyrocket-test-ports-{os.getuid()}"
_MOST_HELD: Final = 64

_held: Final[deque[int]] = deque()


def free_port() -> int:
    """A port that is free now, as are those that a broker takes beside its own; no other process is given it."""
    if len(_held) == _MOST_HELD:
        fcntl.lockf(_locks(), fcntl.LOCK_UN, 1, _held.popleft())
    for port in random.sample(_PORTS, len(_PORTS)):
        if port in _held or not _lock(port):
            continue
        if _is_free(port):
            _held.append(port)
            return port
        fcntl.lockf(_locks(), fcntl.LOCK_UN, 1, port)
    raise AssertionError(f"no port is free between {_PORTS.start} and {_PORTS.stop}")


@functools.cache
def _locks() -> int:
    return os.open(_LOCKS, os.O_RDWR | os.O_CREAT, 0o600)


def _lock(port: int) -> bool:
    try:
        fcntl.lockf(_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except (BlockingIOError, PermissionError):  # POSIX lets the kernel say either
        return False
    return True


def _is_free(port: int) -> bool:
    with contextlib.suppress(OSError), contextlib.ExitStack() as held:
        for distance in _NEIGHBOURS:
            held.enter_context(socket.create_server(("127.0.0.1", port + distance)))
        return True
    return False
