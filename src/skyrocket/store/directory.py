"""The store directory itself: one process at a time, and a mark while it runs."""

import fcntl
import os
import threading

from skyrocket.errors import StoreLocked
from skyrocket.store.disk import Disk
from skyrocket.store.layout import StorePaths

# fcntl locks belong to the process: a second store of the same process would not be kept out by them.
_open_here: set[str] = set()
_open_here_lock = threading.Lock()


class StoreDirectory:
    """`lock` and `abort` of a store directory."""

    def __init__(self, disk: Disk, paths: StorePaths) -> None:
        self._disk = disk
        self._paths = paths
        self._real_root = ""
        self._lock_fd: int | None = None

    def lock(self) -> None:
        """Take the directory; the lock is the one that RocketMQ takes (a POSIX record lock on the first byte)."""
        self._disk.make_directory(self._paths.root)
        self._real_root = os.path.realpath(self._paths.root)
        with _open_here_lock:
            if self._real_root in _open_here:
                raise StoreLocked(f"{self._paths.root} is open in this process already; close that store first")
            fd = os.open(self._paths.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0, os.SEEK_SET)
            except OSError as error:
                os.close(fd)
                raise StoreLocked(
                    f"{self._paths.root} is in use by another broker; stop it, or choose another storePathRootDir"
                ) from error
            os.pwrite(fd, b"lock", 0)
            self._lock_fd = fd
            _open_here.add(self._real_root)

    def unlock(self) -> None:
        with _open_here_lock:
            if self._lock_fd is not None:
                os.close(self._lock_fd)
                self._lock_fd = None
                _open_here.discard(self._real_root)

    @property
    def stopped_cleanly(self) -> bool:
        """Whether the last one who had the directory said goodbye."""
        return not self._disk.exists(self._paths.abort)

    def mark_running(self) -> None:
        """Leave the mark that a crash would leave."""
        self._disk.write_file(self._paths.abort, str(os.getpid()).encode())
        self._disk.sync_directory(self._paths.root)

    def mark_stopped(self) -> None:
        """Everything is on disk: the next start need not recover."""
        self._disk.unlink(self._paths.abort)
        self._disk.sync_directory(self._paths.root)
