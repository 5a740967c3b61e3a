"""Where a lake lies: a directory of this machine, or a place on an object store or HDFS; paths are relative to it."""

import urllib.parse
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from skyrocket.errors import SkyrocketError

BOOKS: Final = "_skyrocket"


class LakeBusy(SkyrocketError):
    """Another process writes this broker's part of the lake."""


class LakeFiles(Protocol):
    """What a lake asks of the place where it lies."""

    def exists(self, path: str) -> bool: ...

    def names(self, folder: str) -> list[str]:
        """Of the files in a folder, sorted; none where there is no folder."""

    def read(self, path: str) -> bytes: ...

    def create(self, path: str, data: bytes) -> bool:
        """Write a file that must not exist yet; False when somebody else was faster."""

    def replace(self, path: str, data: bytes) -> None:
        """Readers see the old bytes or the new ones."""

    def move(self, pairs: Sequence[tuple[str, str]]) -> None:
        """From and to; what was moved before stays moved."""

    def delete(self, *paths: str) -> None:
        """They need not be there."""

    def empty(self, folder: str) -> None:
        """A folder without anything in it, whatever was there."""

    def size(self, path: str) -> int: ...

    def parquet(self, path: str) -> pq.ParquetFile: ...

    def new_parquet(self, path: str, schema: pa.Schema) -> AbstractContextManager[pq.ParquetWriter]:
        """A file of ours; it will survive a power cut when the block has ended."""

    def locked(self, name: str) -> AbstractContextManager[Callable[[], None]]:
        """One writer of this name; what is given raises LakeBusy when that is so no more. Raises LakeBusy."""


def shown(location: str) -> str:
    """A location for people: neither account nor server."""
    parts = urllib.parse.urlsplit(location)
    if not parts.scheme:
        return location
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def of_spark(location: str, path: str) -> str:
    """A file of a lake as Spark's own file systems call it: those know accounts and servers by their settings."""
    parts = urllib.parse.urlsplit(location)
    if not parts.scheme:
        return str(Path(location) / path)
    scheme = "s3a" if parts.scheme in ("s3", "s3n") else parts.scheme
    return f"{scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}/{path}"
