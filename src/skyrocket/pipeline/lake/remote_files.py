"""A lake on an object store or HDFS, through pyarrow: Spark's own file systems, and their jars, are not asked."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from skyrocket.pipeline.file_systems import create_at, file_system, replace_at
from skyrocket.pipeline.lake.files import BOOKS
from skyrocket.pipeline.lake.lease import leased
from skyrocket.pipeline.lake.parquet_files import parquet_writer

_WITHOUT_FOLDERS = ("s3", "gcs", "abfs")


class RemoteFiles:
    """LakeFiles below a URI."""

    def __init__(self, location: str) -> None:
        self._files, path = file_system(location)
        self._root = path.rstrip("/")

    def exists(self, path: str) -> bool:
        return bool(self._files.get_file_info(self._at(path)).type != fs.FileType.NotFound)

    def names(self, folder: str) -> list[str]:
        found = self._files.get_file_info(fs.FileSelector(self._at(folder), allow_not_found=True))
        return sorted(each.base_name for each in found if each.type == fs.FileType.File)

    def read(self, path: str) -> bytes:
        with self._files.open_input_stream(self._at(path)) as stream:
            return bytes(stream.read())

    def create(self, path: str, data: bytes) -> bool:
        """HDFS keeps the first of two. An object store keeps the last: so the writers' lease must keep them apart."""
        if self.exists(path):
            return False
        create_at(self._files, self._at(path), data)
        return self.read(path) == data

    def replace(self, path: str, data: bytes) -> None:
        replace_at(self._files, self._at(path), data)

    def move(self, pairs: Sequence[tuple[str, str]]) -> None:
        for source, target in pairs:
            self._make_folder_of(target)
            self._files.move(self._at(source), self._at(target))

    def delete(self, *paths: str) -> None:
        for path in paths:
            if self.exists(path):
                self._files.delete_file(self._at(path))

    def empty(self, folder: str) -> None:
        if self.exists(folder):
            self._files.delete_dir_contents(self._at(folder), missing_dir_ok=True)

    def size(self, path: str) -> int:
        return int(self._files.get_file_info(self._at(path)).size)

    def parquet(self, path: str) -> pq.ParquetFile:
        return pq.ParquetFile(self._at(path), filesystem=self._files)

    @contextmanager
    def new_parquet(self, path: str, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
        self._make_folder_of(path)
        with self._files.open_output_stream(self._at(path)) as stream, parquet_writer(stream, schema) as writer:
            yield writer

    def locked(self, name: str) -> AbstractContextManager[Callable[[], None]]:
        return leased(self._files, self._at(f"{BOOKS}/locks/{name}.json"), name)

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _make_folder_of(self, path: str) -> None:
        if self._files.type_name not in _WITHOUT_FOLDERS:
            self._files.create_dir(self._at(path).rpartition("/")[0])
