"""`config/timercheck`: how far the timer has read, written and delivered; a page of 4096 bytes, 56 of them used.

    LAST READ TIME 8 | LOG FLUSHED POSITION 8 | QUEUE OFFSET 8 | QUEUE OFFSET OF THE MASTER 8 |
    STATE VERSION 8 | VERSION TIMESTAMP 8 | VERSION COUNTER 8

The 56 bytes are also what a slave fetches from its master; older ones send only the first 32.
"""

from struct import Struct
from typing import NamedTuple

from skyrocket.errors import DataError
from skyrocket.model.data_version import DataVersion

SIZE = 4096
_FIELDS = Struct(">qqqqqqq")
_OFFSETS = Struct(">qqqq")
WIRE_SIZE = _FIELDS.size


class TimerCheckpoint(NamedTuple):
    """Everything before `last_read_time_ms` on the wheel was delivered."""

    last_read_time_ms: int = 0
    log_flushed_position: int = 0
    queue_offset: int = 0
    master_queue_offset: int = 0
    data_version: DataVersion = DataVersion()


def encode_timer_checkpoint(checkpoint: TimerCheckpoint) -> bytes:
    """The whole page; its first WIRE_SIZE bytes are the wire form."""
    version = checkpoint.data_version
    fields = _FIELDS.pack(*checkpoint[:4], version.state_version, version.timestamp, version.counter)
    return fields.ljust(SIZE, b"\0")


def decode_timer_checkpoint(data: bytes) -> TimerCheckpoint:
    """The checkpoint of a page or of the wire form; raises DataError when it is cut off."""
    if len(data) >= _FIELDS.size:
        read_time, flushed, offset, master_offset, state_version, timestamp, counter = _FIELDS.unpack_from(data)
        version = DataVersion(state_version, counter, timestamp)
        return TimerCheckpoint(read_time, flushed, offset, master_offset, version)
    if len(data) >= _OFFSETS.size:
        return TimerCheckpoint(*_OFFSETS.unpack_from(data))
    raise DataError(f"a timer checkpoint of {len(data)} bytes; it has at least {_OFFSETS.size}")
