"""The checkpoint on disk; only its owner, the store, writes it."""

import threading

from skyrocket.format.checkpoint import SIZE, Checkpoint, decode_checkpoint, encode_checkpoint
from skyrocket.store.disk import Disk


class CheckpointFile:
    """Reads the checkpoint once, then keeps it and writes it when told."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._lock = threading.Lock()
        self._written: Checkpoint | None = None
        self.current = Checkpoint()

    def load(self) -> bool:
        """Read the file; False when it is there but cannot be trusted (then all values are 0, which is safe)."""
        try:
            page = self._disk.read_file(self._path)
        except FileNotFoundError:
            return True
        checkpoint, trusted = decode_checkpoint(page)
        self.current = checkpoint if trusted else Checkpoint()
        return trusted

    def advance(self, **values: int) -> None:
        """Move values forward; none ever goes back."""
        with self._lock:
            newer = {name: value for name, value in values.items() if value > getattr(self.current, name)}
            self.current = self.current._replace(**newer)

    def set_flushed(self, offset: int) -> None:
        """Say where the log ends after recovery; when that is less than before, the file says so at once."""
        with self._lock:
            goes_back = offset < self.current.flushed_offset
            self.current = self.current._replace(flushed_offset=offset)
        if goes_back:
            self.flush()

    def flush(self) -> None:
        """Write the page if it changed.

        In place, as RocketMQ does: a torn page is noticed by its checksum and taken as zeros.
        """
        with self._lock:
            current = self.current
            if current == self._written:
                return
            fd = self._disk.create(self._path, SIZE)
            try:
                self._disk.write_at(fd, encode_checkpoint(current), 0)
                self._disk.sync(fd)
            finally:
                self._disk.close(fd)
            self._written = current
