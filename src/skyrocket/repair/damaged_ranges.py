"""Damaged stretches of the log, and what is put in their place so that the records behind them stay reachable.

A stretch within a file becomes one record that no queue and no index takes: a rolled-back transaction, which RocketMQ
passes over as well. A stretch up to the end of a file becomes the blank that every file ends with.
"""

from collections.abc import Iterator
from typing import NamedTuple

from skyrocket.format import sys_flag as flags
from skyrocket.format.record import BLANK_SIZE, PROPERTIES_LENGTH, encode_blank, encode_record, head_struct, topic_part
from skyrocket.model.message import Host, StoredMessage

FILLER_TOPIC = "SKYROCKET_REPAIRED"
_NOBODY = Host(b"\x7f\x00\x00\x01", 0)
_SMALLEST = head_struct(0).size + len(topic_part(FILLER_TOPIC.encode())[1]) + PROPERTIES_LENGTH.size


class DamagedRange(NamedTuple):
    """Bytes of the log, within one file, that are not intact records."""

    start: int
    end: int
    before_ms: int  # store time of the record before

    @property
    def size(self) -> int:
        return self.end - self.start


def ranges_in_files(start: int, end: int, before_ms: int, file_size: int) -> Iterator[DamagedRange]:
    """A damaged stretch, file by file."""
    while start < end:
        file_end = start - start % file_size + file_size
        yield DamagedRange(start, min(end, file_end), before_ms)
        start = file_end


def filler(damaged: DamagedRange, file_size: int) -> bytes | None:
    """What to write at the start of a stretch; None when nothing fits there."""
    if damaged.end % file_size == 0:
        return encode_blank(damaged.size) if damaged.size >= BLANK_SIZE else None
    if damaged.size < _SMALLEST:
        return None
    message = StoredMessage(
        topic=FILLER_TOPIC,
        queue_id=0,
        queue_offset=0,
        physical_offset=damaged.start,
        record_size=damaged.size,
        flag=0,
        sys_flag=flags.TRANSACTION_ROLLBACK,
        born_timestamp=damaged.before_ms,
        born_host=_NOBODY,
        store_timestamp=max(damaged.before_ms, 1),
        store_host=_NOBODY,
        reconsume_times=0,
        prepared_transaction_offset=0,
        body_crc=0,
        body=bytes(damaged.size - _SMALLEST),
    )
    return encode_record(message, b"")
