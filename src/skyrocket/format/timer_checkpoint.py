"""`config/timercheck`: how far the timer has read, written and delivered; a page of 4096 bytes, 56 of them used.

    LAST READ TIME 8 | LOG FLUSHED POSITION 8 | QUEUE OFFSET 8 | QUEUE OFFSET OF THE MASTER 8 |
    STATE VERSION 8 | VERSION TIMESTAMP 8 | VERSION COUNTER 8

The 56 bytes are also what a slave fetches from its master; older ones send only the first 32.

Ours, from byte 64 on, where RocketMQ has zeros: steps that were delivered in part, and before which position.

    CRC 4 of the first 56 bytes and what follows | COUNT 4 | (STEP TIME 8 | DELIVERED BEFORE POSITION 8) …

Another program that goes on with the store changes the first bytes; then the CRC does not fit, and no step counts as
begun.
"""

from struct import Struct
from typing import NamedTuple

from skyrocket.errors import DataError
from skyrocket.format.crc import crc32
from skyrocket.model.data_version import DataVersion

SIZE = 4096
_FIELDS = Struct(">qqqqqqq")
_OFFSETS = Struct(">qqqq")
WIRE_SIZE = _FIELDS.size
_SEAL = Struct(">I")
_SEAL_AT = 64
_COUNT = Struct(">I")
_BEGUN = Struct(">qq")
MOST_BEGUN = 64


class TimerCheckpoint(NamedTuple):
    """Everything before `last_read_time_ms` on the wheel was delivered, and of steps that were begun what stands in the
    timer log before a position."""

    last_read_time_ms: int = 0
    log_flushed_position: int = 0
    queue_offset: int = 0
    master_queue_offset: int = 0
    data_version: DataVersion = DataVersion()
    begun: tuple[tuple[int, int], ...] = ()  # time of a step, position


def encode_timer_checkpoint(checkpoint: TimerCheckpoint) -> bytes:
    """The whole page; its first WIRE_SIZE bytes are the wire form."""
    version = checkpoint.data_version
    fields = _FIELDS.pack(*checkpoint[:4], version.state_version, version.timestamp, version.counter)
    begun = checkpoint.begun[:MOST_BEGUN]
    if begun:
        pairs = _COUNT.pack(len(begun)) + b"".join(_BEGUN.pack(*pair) for pair in begun)
        fields = fields.ljust(_SEAL_AT, b"\0") + _SEAL.pack(crc32(fields + pairs)) + pairs
    return fields.ljust(SIZE, b"\0")


def decode_timer_checkpoint(data: bytes) -> TimerCheckpoint:
    """The checkpoint of a page or of the wire form; raises DataError when it is cut off."""
    if len(data) >= _FIELDS.size:
        read_time, flushed, offset, master_offset, state_version, timestamp, counter = _FIELDS.unpack_from(data)
        version = DataVersion(state_version, counter, timestamp)
        return TimerCheckpoint(read_time, flushed, offset, master_offset, version, _begun(data))
    if len(data) >= _OFFSETS.size:
        return TimerCheckpoint(*_OFFSETS.unpack_from(data))
    raise DataError(f"a timer checkpoint of {len(data)} bytes; it has at least {_OFFSETS.size}")


def _begun(page: bytes) -> tuple[tuple[int, int], ...]:
    if len(page) != SIZE:
        return ()
    (seal,), (count,) = _SEAL.unpack_from(page, _SEAL_AT), _COUNT.unpack_from(page, _SEAL_AT + _SEAL.size)
    start = _SEAL_AT + _SEAL.size
    pairs = page[start : start + _COUNT.size + min(count, MOST_BEGUN) * _BEGUN.size]
    if not 0 < count <= MOST_BEGUN or seal != crc32(page[:WIRE_SIZE] + pairs):
        return ()
    return tuple((time_ms, position) for time_ms, position in _BEGUN.iter_unpack(pairs[_COUNT.size :]))
