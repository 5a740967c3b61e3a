"""The disk of programs that keep a few files, if any."""

import os

from skyrocket.store.disk import Disk


class DiskWithDirectories(Disk):
    """Makes the directory of a file when the file is first written: a server that keeps nothing leaves none."""

    def write_file(self, path: str, data: bytes) -> None:
        self.make_directory(os.path.dirname(os.path.abspath(path)))
        super().write_file(path, data)
