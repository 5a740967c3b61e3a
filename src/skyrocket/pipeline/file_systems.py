"""Where small files of ours lie beside Spark's own: on this machine, in an object store, on HDFS.

Spark's file systems live in the JVM, which Python's workers cannot ask: ours are pyarrow's, and HDFS' own protocol
through the package hdfs-native, which needs neither Java nor libhdfs.
"""

import os
import secrets
import urllib.parse
from functools import lru_cache
from typing import Any, Final

from pyarrow import fs

from skyrocket.errors import SkyrocketError

_HADOOP: Final = ("hdfs", "viewfs")


class HadoopFiles(fs.FSSpecHandler):  # type: ignore[misc]
    """hdfs-native's files for pyarrow; a move replaces what is there, as pyarrow says that it does."""

    def move(self, src: str, dest: str) -> None:
        self.fs.mv(src, dest, overwrite=True)

    def move_unless_there(self, src: str, dest: str) -> None:
        """The first one wins, whoever else moves a file there at the same time."""
        try:
            self.fs.mv(src, dest, overwrite=False)
        except Exception:
            if not self.fs.exists(dest):
                raise
            self.fs.rm(src)


def is_remote(location: str) -> bool:
    """Whether a location is on another machine than this one, or may be."""
    return urllib.parse.urlsplit(location).scheme not in ("", "file")


def file_system(location: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or URI, and the path there; raises what the system raises, or SkyrocketError."""
    scheme = urllib.parse.urlsplit(location).scheme
    if not scheme:
        return fs.LocalFileSystem(), location
    if scheme in _HADOOP:
        return _hadoop(scheme, location)
    # Hadoop's names for S3: a stream's checkpoint is read by Spark and by us.
    return _by_uri(f"s3{location[len(scheme) :]}" if scheme in ("s3a", "s3n") else location)


def create_remote_file(location: str, data: bytes) -> None:
    """Write a file that is whole or absent. On HDFS the first of two wins; an object store cannot tell them apart."""
    create_at(*file_system(location), data)


def create_at(files: fs.FileSystem, path: str, data: bytes) -> None:
    """As create_remote_file, in a system that is known."""
    aside = _written_aside(files, path, data)
    handler: Any = getattr(files, "handler", None)
    if isinstance(handler, HadoopFiles):
        handler.move_unless_there(aside, path)
    else:
        files.move(aside, path)


def replace_at(files: fs.FileSystem, path: str, data: bytes) -> None:
    """Write a file so that readers see the old bytes or the new ones."""
    files.move(_written_aside(files, path, data), path)


def _written_aside(files: fs.FileSystem, path: str, data: bytes) -> str:
    folder, _, name = path.rpartition("/")
    files.create_dir(folder)
    aside = f"{folder}/_{secrets.token_hex(8)}.{name}.part"
    with files.open_output_stream(aside) as stream:
        stream.write(data)
    return aside


def read_remote_file(location: str) -> bytes | None:
    """None: it is not there."""
    files, path = file_system(location)
    if files.get_file_info(path).type == fs.FileType.NotFound:
        return None
    with files.open_input_stream(path) as stream:
        return bytes(stream.read())


def _by_uri(uri: str) -> tuple[fs.FileSystem, str]:
    files, path = fs.FileSystem.from_uri(uri)
    return files, path


def _hadoop(scheme: str, location: str) -> tuple[fs.FileSystem, str]:
    parts = urllib.parse.urlsplit(location)
    try:
        files = _hadoop_client(scheme, parts.hostname, parts.port, os.getpid())
    except ModuleNotFoundError:
        return _by_libhdfs(scheme, location)
    return fs.PyFileSystem(HadoopFiles(files)), parts.path


@lru_cache(maxsize=10)
def _hadoop_client(scheme: str, host: str | None, port: int | None, _process: int) -> Any:
    """Kept here, one per process, and not by fsspec: that drops its own in a child before it becomes Spark's JVM, and
    the child waits for threads which it does not have."""
    from hdfs_native.fsspec import HdfsFileSystem, ViewfsFileSystem

    kind = HdfsFileSystem if scheme == "hdfs" else ViewfsFileSystem
    # Without a host it is the one of fs.defaultFS, in the files of HADOOP_CONF_DIR.
    return kind(host, port, skip_instance_cache=True)


def _by_libhdfs(scheme: str, location: str) -> tuple[fs.FileSystem, str]:
    try:
        return _by_uri(location)
    except OSError as error:
        raise SkyrocketError(
            f"{scheme}:// needs one more package here, and the workers' machines ({error}); "
            "pip install 'skyrocket[hdfs]'"
        ) from error
