"""Whether a slave's log is a first part of its master's: asked by our own slaves before they connect to the HA port.

The plain protocol knows offsets only. A master that lost its newest records in a power cut, and has stored others
since, would go on behind records that it never had. So a slave shows a sum over the end of its log, and the master
compares.
"""

from typing import Final, NamedTuple, Protocol
from zlib import crc32

from skyrocket.broker.replication.master_stream import LogBytes, ReplicaRefused, refused_as_ahead

COMPARED_BYTES: Final = 64 << 10


class LogTail(NamedTuple):
    """Where a log ends, and a sum over its last bytes."""

    end_offset: int
    size: int
    crc: int


class ReadableLog(Protocol):
    """A log whose bytes can be read."""

    def raw(self, physical_offset: int, max_bytes: int) -> memoryview | None: ...


def tail_of(log: ReadableLog, first_offset: int, end_offset: int) -> LogTail:
    """The end of a log that begins at `first_offset`."""
    size = min(COMPARED_BYTES, end_offset - first_offset)
    return LogTail(end_offset, size, _sum(log, end_offset - size, size))


def check_tail(log: LogBytes, tail: LogTail) -> None:
    """Raises ReplicaRefused when a slave's log is not a first part of this one, as far as can be seen."""
    if not 0 <= tail.size <= COMPARED_BYTES or tail.size > tail.end_offset:
        raise ReplicaRefused(f"the slave compared {tail.size} bytes before offset {tail.end_offset}")
    if tail.end_offset > log.readable_offset:
        raise refused_as_ahead(tail.end_offset, log.readable_offset)
    start = max(tail.end_offset - tail.size, log.min_offset)
    if not tail.size or start != tail.end_offset - tail.size:
        return  # nothing to compare: the stream itself refuses what was deleted
    if _sum(log, start, tail.size) != tail.crc:
        raise ReplicaRefused(
            f"the slave's log differs from ours before offset {tail.end_offset}: they have gone different ways. "
            "Nothing was changed. Compare both logs (skyrocket inspect --compare), then keep the right one"
        )


def _sum(log: ReadableLog, start: int, size: int) -> int:
    crc, end = 0, start + size
    while start < end:
        piece = log.raw(start, end - start)
        assert piece, f"no log bytes at {start}"
        crc = crc32(piece, crc)
        start += len(piece)
    return crc
