"""A lake in a directory that this machine mounts."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from skyrocket.pipeline.durable_files import create_file, flush_directory, flush_file, replace_file
from skyrocket.pipeline.lake.files import BOOKS, LakeBusy
from skyrocket.pipeline.lake.parquet_files import parquet_writer


class LocalFiles:
    """LakeFiles below a directory."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def exists(self, path: str) -> bool:
        return (self._root / path).exists()

    def names(self, folder: str) -> list[str]:
        return sorted(each.name for each in (self._root / folder).glob("*"))

    def read(self, path: str) -> bytes:
        return (self._root / path).read_bytes()

    def create(self, path: str, data: bytes) -> bool:
        return create_file(self._root / path, data)

    def replace(self, path: str, data: bytes) -> None:
        replace_file(self._root / path, data)

    def move(self, pairs: Sequence[tuple[str, str]]) -> None:
        touched = set()
        for source, target in pairs:
            place = self._root / target
            place.parent.mkdir(parents=True, exist_ok=True)
            (self._root / source).replace(place)
            touched.add(place.parent)
        for directory in touched:
            flush_directory(directory)

    def delete(self, *paths: str) -> None:
        places = [self._root / path for path in paths]
        for place in places:
            place.unlink(missing_ok=True)
        for directory in {place.parent for place in places}:
            if directory.is_dir():
                flush_directory(directory)

    def empty(self, folder: str) -> None:
        shutil.rmtree(self._root / folder, ignore_errors=True)
        (self._root / folder).mkdir(parents=True)

    def size(self, path: str) -> int:
        return (self._root / path).stat().st_size

    def parquet(self, path: str) -> pq.ParquetFile:
        return pq.ParquetFile(self._root / path)

    @contextmanager
    def new_parquet(self, path: str, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with parquet_writer(target, schema) as writer:
            yield writer
        flush_file(target)

    @contextmanager
    def locked(self, name: str) -> Iterator[Callable[[], None]]:
        """The system lets go of it when the process dies."""
        lock = self._root / BOOKS / "locks" / f"{name}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LakeBusy(
                    f"another process writes the records of {name} into {self._root}; "
                    f"wait for it, or stop it (its lock: {lock})"
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield lambda: None
