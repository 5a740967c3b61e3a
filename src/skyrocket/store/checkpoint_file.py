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

    def set_flushed(self, offset: int, last_timestamp: int) -> None:
        """Say where the log ends after recovery, which has forced all of it to disk; the file says so at once.

        Before, it may have been what RocketMQ made of it. A kill would leave that to the next recovery, which would
        then take nothing of the log for flushed.

        No time is left that is later than the last record's: whoever reads the file would miss the records up to it.
        `last_timestamp` is 0 when recovery has seen no record.
        """
        with self._lock:
            before = self.current
            after = before._replace(flushed_offset=offset)
            if offset < before.flushed_offset or last_timestamp:
                latest = last_timestamp if last_timestamp or not offset else max(before[:3])
                times = {name: min(getattr(before, name), latest) for name in before._fields[:3]}
                offsets = {name: min(getattr(before, name), offset) for name in before._fields[3:-1]}
                after = after._replace(**times, **offsets)
            self.current = after
        if after != before:
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
