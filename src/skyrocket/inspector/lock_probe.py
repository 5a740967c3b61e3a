"""Whether a running process holds the store; asks without taking the lock."""

import fcntl
import os
import struct
from pathlib import Path

_FLOCK = struct.Struct("hhqqi4x")  # type, whence, start, length, process: struct flock of 64-bit Linux


def lock_holder(path: Path) -> int | None:
    """The process that holds the record lock on the first byte, None when nobody does."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        kind, _whence, _start, _length, process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, question))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return process if kind != fcntl.F_UNLCK else None
