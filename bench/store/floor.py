"""The floor: what Python must at least do to bring a message into a map.

A bare loop that packs the fixed head of a record from the fields of its message and copies the body behind it: no
checks, no checksum, no queue offset, no topic, no properties, no lock, no result. Nobody can store messages one by one
faster in this language and this map, so the store's rate is told as a part of this one.
"""

from collections.abc import Sequence
from pathlib import Path

from bench.store.timing import Round, Stopwatch, warm_map
from skyrocket.format.record import HEADS, MAGIC_V1
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.disk import Disk

_HEAD = HEADS[0]
_FILE_BYTES = 1 << 30
_HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"

# A round of the floor repeats its messages so often, to take about as long as a round of the store: of a shorter one
# the best would more easily fall into a quiet moment.
REPEATS = 6


class Floor:
    """A file made and mapped exactly as a commit-log file is; rounds write the same warm pages again."""

    def __init__(self, path: Path, warm_bytes: int) -> None:
        disk = Disk()
        fd = disk.create(str(path), _FILE_BYTES)
        disk.allocate(fd, 0, warm_bytes)
        self._map = disk.map(fd, _FILE_BYTES)
        self._warm_bytes = warm_bytes
        warm_map(self._map, 0, warm_bytes)
        disk.close(fd)

    def append(self, messages: Sequence[PutMessage]) -> Round:
        """Pack and copy, nothing else."""
        target, pack_into, head_bytes = self._map, _HEAD.pack_into, _HEAD.size
        at, now = 0, messages[0].born_timestamp
        with Stopwatch() as watch:
            for _ in range(REPEATS):
                for message in messages:
                    body = message.body
                    length = len(body)
                    body_at = at + head_bytes
                    end = body_at + length
                    pack_into(
                        target, at, end - at, MAGIC_V1, 0, message.queue_id, message.flag, 0, at, message.sys_flag,
                        message.born_timestamp, message.born_host, now, _HOST, message.reconsume_times,
                        message.prepared_transaction_offset, length,
                    )  # fmt: skip
                    target[body_at:end] = body
                    at = end
        assert at <= self._warm_bytes, "the floor has left the warm part of its file"
        return watch.round(REPEATS * len(messages))

    def close(self) -> None:
        self._map.close()
