"""One JSON file of the store with its backup: the content of before the last save.

Saving writes `<name>.tmp`, renames the old file to `<name>.bak` and the new one into its place. After a crash at any
of these steps either the file or its backup is whole. Loading takes the file, else the backup; it never begins with
nothing while bytes are there, because the next save would then destroy what an operator could still repair.
"""

import logging
import os
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from skyrocket.errors import CorruptFile, DataError

logger = logging.getLogger(__name__)

Content = TypeVar("Content")


class ConfigDisk(Protocol):
    """What this needs of `store.disk.Disk`."""

    def exists(self, path: str) -> bool: ...

    def read_file(self, path: str) -> bytes: ...

    def write_file(self, path: str, data: bytes) -> None: ...

    def rename(self, old: str, new: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...


class ConfigFile(Generic[Content]):
    """Loads and saves the content of one path; its directory exists, and it is loaded before it is saved."""

    def __init__(
        self,
        disk: ConfigDisk,
        path: str,
        decode: Callable[[bytes], Content],
        encode: Callable[[Content], bytes],
    ) -> None:
        self.path = path
        self.backup_path = path + ".bak"
        self._disk = disk
        self._decode = decode
        self._encode = encode
        self._backup_is_better = False

    def load(self) -> Content | None:
        """The content, from the backup if need be; None when neither file holds a byte.

        Raises CorruptFile when there are bytes but neither file can be read as what it should be.
        """
        content, trouble = self._read(self.path)
        if content is not None:
            return content
        backup, backup_trouble = self._read(self.backup_path)
        self._backup_is_better = True
        if backup is not None:
            logger.warning("config file taken from its backup path=%s reason=%s", self.path, trouble or "no content")
            return backup
        if trouble is None and backup_trouble is None:
            return None
        raise CorruptFile(
            self.path if trouble is not None else self.backup_path,
            str(trouble or backup_trouble),
            f"Repair it, or put a good copy there, or move {self.path} and {self.backup_path} away to begin without",
        )

    def save(self, content: Content) -> None:
        """Make this the content; it is on disk when this returns."""
        temporary = self.path + ".tmp"
        self._disk.write_file(temporary, self._encode(content))
        if self._disk.exists(self.path):
            # A file that could not be loaded must not take the place of the backup; it is kept for a closer look.
            self._disk.rename(self.path, self.path + ".damaged" if self._backup_is_better else self.backup_path)
        self._disk.rename(temporary, self.path)
        self._disk.sync_directory(os.path.dirname(self.path) or ".")
        self._backup_is_better = False

    def _read(self, path: str) -> tuple[Content | None, DataError | None]:
        """The content; or what is wrong with it, which is nothing for a file that is missing or empty."""
        try:
            data = self._disk.read_file(path)
        except FileNotFoundError:
            return None, None
        if not data:
            return None, None
        try:
            return self._decode(data), None
        except DataError as error:
            return None, error
