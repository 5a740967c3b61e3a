"""The floor: what Python must at least do to bring a message into a map.

A bare loop that packs the fixed head of a record and copies the body behind it: no checks, no checksum, no queue
offset, no topic, no properties, no lock, no result. Nobody can store messages faster in this language and this map, so
the store's rate is told as a part of this one.
"""

from collections.abc import Sequence
from pathlib import Path

from bench.store.timing import Round, Stopwatch, warm_file
from skyrocket.format.record import HEADS, MAGIC_V1
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.disk import Disk

_HEAD = HEADS[0]
_FILE_BYTES = 1 << 30
_HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"


class Floor:
    """A map of a file made exactly as a commit-log file is made."""

    def __init__(self, path: Path, warm_bytes: int) -> None:
        disk = Disk()
        fd = disk.create(str(path), _FILE_BYTES)
        disk.allocate(fd, 0, warm_bytes)
        warm_file(str(path), 0, warm_bytes)
        self._map = disk.map(fd, _FILE_BYTES)
        self._end = warm_bytes
        self._position = 0
        disk.close(fd)

    def append(self, messages: Sequence[PutMessage]) -> Round:
        """Pack and copy, nothing else."""
        target, pack_into, head_bytes = self._map, _HEAD.pack_into, _HEAD.size
        at, now = self._position, messages[0].born_timestamp
        with Stopwatch() as watch:
            for message in messages:
                body = message.body
                length = len(body)
                body_at = at + head_bytes
                end = body_at + length
                pack_into(
                    target, at, end - at, MAGIC_V1, 0, 0, 0, 0, at, 0, now, _HOST, now, _HOST, 0, 0, length
                )  # fmt: skip
                target[body_at:end] = body
                at = end
        assert at <= self._end, "the floor has left the warm part of its file"
        self._position = at
        return watch.round(len(messages))

    def close(self) -> None:
        self._map.close()
