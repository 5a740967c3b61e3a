"""Small files that must be whole or absent: written aside, flushed, then named."""

import os
import tempfile
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old bytes or the new ones, also after a power cut."""
    aside = _written_aside(path, data)
    aside.replace(path)
    flush_directory(path.parent)


def create_file(path: Path, data: bytes) -> bool:
    """Write a file that must not exist yet; False when somebody else was faster."""
    aside = _written_aside(path, data)
    try:
        os.link(aside, path)  # unlike rename, link refuses a name that is taken
    except FileExistsError:
        return False
    finally:
        aside.unlink()
    flush_directory(path.parent)
    return True


def flush_file(path: Path) -> None:
    """Wait until a file that somebody else wrote is on the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def flush_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _written_aside(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return Path(aside)
