"""Config files in memory, and connections that are only names, for the tests of what a broker remembers."""

from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import JsonFile
from skyrocket.store.config_file import ConfigFile

PATH = "config/file.json"

T = TypeVar("T")


class MemoryDisk:
    """A ConfigDisk without a disk."""

    def __init__(self, **files: bytes) -> None:
        self.files: dict[str, bytes] = dict(files)

    def exists(self, path: str) -> bool:
        return path in self.files

    def read_file(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def write_file(self, path: str, data: bytes) -> None:
        self.files[path] = data

    def rename(self, old: str, new: str) -> None:
        self.files[new] = self.files.pop(old)

    def sync_directory(self, path: str) -> None:
        pass


def config_file(
    config_format: JsonFile[T], disk: MemoryDisk | None = None, dialect: Dialect = Dialect.V5_4
) -> ConfigFile[T]:
    """A file of `format.config_files`."""
    return ConfigFile(
        MemoryDisk() if disk is None else disk,
        PATH,
        config_format.decode,
        partial(config_format.encode, dialect=dialect),
    )


@dataclass(eq=False)
class FakeChannel:
    """A connection; two of the same name are two."""

    name: str = "channel"
    is_open: bool = True
    is_writable: bool = True
