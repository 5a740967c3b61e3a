"""Small files that must be whole or absent: written aside, flushed, then named. For paths that this machine mounts.

Also where jobs keep what they have done, and short names for what they were asked.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

_DIGEST_LETTERS: Final = 16


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old bytes or the new ones, also after a power cut."""
    with replaced_file(path) as file:
        file.write(data)


@contextmanager
def replaced_file(path: Path) -> Iterator[BinaryIO]:
    """As replace_file, for what a library writes: the file has its name once the block has ended well."""
    with _written_aside(path) as (file, aside):
        yield file
        _flush(file)
        aside.replace(path)
    flush_directory(path.parent)


def create_file(path: Path, data: bytes) -> bool:
    """Write a file that must not exist yet; False when somebody else was faster."""
    is_ours = True
    with _written_aside(path) as (file, aside):
        file.write(data)
        _flush(file)
        try:
            os.link(aside, path)  # unlike rename, link refuses a name that is taken
        except FileExistsError:
            is_ours = False
    flush_directory(path.parent)  # whoever came second goes by the file as well
    return is_ours


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


@contextmanager
def _written_aside(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A file of nobody else (Spark passes over names with a dot), with the rights that any new file has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with aside.open("xb") as file:
            yield file, aside
    finally:
        aside.unlink(missing_ok=True)


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def state_directory(environment: Mapping[str, str]) -> Path:
    """The user's state directory: the same from wherever a command is run."""
    home = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "skyrocket"


def digest(values: Mapping[str, str]) -> str:
    """A short name for some values, whatever their order."""
    text = json.dumps(sorted(values.items()), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LETTERS]
