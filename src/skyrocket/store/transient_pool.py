"""Private buffers of the size of a log file: with them, appends never touch the page cache.

A committer copies the buffers to the files behind the writer, and readers see only what was copied. What is still
in a buffer is lost when the process dies: that is the price of the pool.
"""

import mmap
import threading
from dataclasses import dataclass

from skyrocket.store.mapped_file_queue import MappedFile


class PoolExhausted(OSError):
    """Every buffer is in use: the committer does not keep up."""


@dataclass(slots=True)
class Buffered:
    """A file whose newest bytes are still in a buffer."""

    file: MappedFile
    buffer: mmap.mmap
    data_end: int  # where its records end; the rest of the file stays zero


class TransientPool:
    """A fixed number of buffers."""

    def __init__(self, buffers: int, buffer_size: int) -> None:
        self._lock = threading.Lock()
        self._free = [mmap.mmap(-1, buffer_size) for _ in range(buffers)]

    @property
    def free(self) -> int:
        """Buffers that nobody uses; at 0 the broker refuses sends as busy."""
        return len(self._free)

    def borrow(self) -> mmap.mmap:
        with self._lock:
            if not self._free:
                raise PoolExhausted("all buffers of the transient store pool are in use")
            return self._free.pop()

    def give_back(self, buffer: mmap.mmap) -> None:
        with self._lock:
            self._free.append(buffer)
