"""`skyrocket` on a disk that forces bytes down as slowly as a file says: `python -m tests.faults.slow_disk ARGUMENTS`.

The file (SLOW_SYNC_FILE in the environment) holds seconds, and is read before each fsync; while it is not there, the
disk is as fast as it is. Everything else is the program as users start it.
"""

import os
import time
from pathlib import Path
from typing import Final
from unittest.mock import patch

from skyrocket.broker.core import parts
from skyrocket.cli import main
from skyrocket.store.disk import Disk

FILE_VARIABLE: Final = "SLOW_SYNC_FILE"


class SlowDisk(Disk):
    """The real file system; only its fsyncs wait."""

    def __init__(self) -> None:
        super().__init__()
        self._file = Path(os.environ[FILE_VARIABLE])

    def sync(self, fd: int) -> None:
        self._wait()
        super().sync(fd)

    def sync_all(self, directory: str) -> None:
        self._wait()
        super().sync_all(directory)

    def sync_directory(self, path: str) -> None:
        self._wait()
        super().sync_directory(path)

    def _wait(self) -> None:
        try:
            seconds = float(self._file.read_text() or 0)
        except FileNotFoundError:
            return
        time.sleep(seconds)


if __name__ == "__main__":
    with patch.object(parts, "Disk", SlowDisk):  # what a broker takes unless it is given one
        main()
