"""A bounded number of open files among many more: the least recently used one is closed."""

import threading
from collections import OrderedDict

from skyrocket.store.disk import Disk


class _Handle:
    """An open descriptor, closed when the last one who uses it lets go."""

    __slots__ = ("_disk", "fd")

    def __init__(self, disk: Disk, fd: int) -> None:
        self._disk = disk
        self.fd = fd

    def __del__(self) -> None:
        self._disk.close(self.fd)


class HandleCache:
    """Open consume-queue files by path."""

    def __init__(self, disk: Disk, max_open: int) -> None:
        self._disk = disk
        self._max_open = max_open
        self._lock = threading.Lock()
        self._handles: OrderedDict[str, _Handle] = OrderedDict()

    def read(self, path: str, length: int, position: int) -> bytes:
        """Bytes of a file; fewer than asked for at its end."""
        handle = self._get(path, None)
        return self._disk.read_at(handle.fd, length, position)

    def write(self, path: str, data: bytes | bytearray | memoryview, position: int, create_size: int) -> None:
        """Write into a file, which is created at its full size when it is not there."""
        handle = self._get(path, create_size)
        self._disk.write_at(handle.fd, data, position)

    def zero_from(self, path: str, position: int, size: int) -> None:
        """Make the rest of a file read as zeros."""
        self._disk.zero_from(self._get(path, None).fd, position, size)

    def sync(self, path: str) -> None:
        self._disk.sync(self._get(path, None).fd)

    def forget(self, path: str) -> None:
        """Close a file that is about to be deleted."""
        with self._lock:
            self._handles.pop(path, None)

    def close(self) -> None:
        with self._lock:
            self._handles.clear()

    def __len__(self) -> int:
        return len(self._handles)

    def _get(self, path: str, create_size: int | None) -> _Handle:
        with self._lock:
            handle = self._handles.get(path)
            if handle is not None:
                self._handles.move_to_end(path)
                return handle
            if create_size is not None and not self._disk.exists(path):
                fd = self._disk.create(path, create_size)
            else:
                fd = self._disk.open(path)
            handle = self._handles[path] = _Handle(self._disk, fd)
            if len(self._handles) > self._max_open:
                self._handles.popitem(last=False)
            return handle
