"""The store's checkpoint file: 4096 bytes, six times or offsets at its start.

RocketMQ maps the page and touches only its first 48 bytes (40 before 5.5.0), so the end of the page is ours: a seal
with the flushed offset and a CRC. With it a flipped bit in the times is noticed; without it (RocketMQ wrote last) the
times are taken as they are. A checkpoint of zeros is always safe: recovery then begins at the oldest file.
"""

from struct import Struct
from typing import NamedTuple

from skyrocket.format.crc import checksum

SIZE = 4096
_TIMES = Struct(">qqqqqq")
_SEAL = Struct(">4sqi")  # magic, flushed physical offset, CRC of the six values and of these two
_SEAL_MAGIC = b"SKY6"
_EARLIER_MAGIC = b"SKYR"  # a seal over the first five values alone
_EARLIER_BYTES = 40
_SEAL_AT = SIZE - _SEAL.size
_SAFETY_MS = 3000


class Checkpoint(NamedTuple):
    """How far the parts of the store had been flushed, by the store time of the last record covered."""

    physic_timestamp: int = 0
    logics_timestamp: int = 0
    index_timestamp: int = 0
    master_flushed_offset: int = 0
    confirm_offset: int = 0
    logics_physical_offset: int = 0  # the last record whose queue entries are on disk; since 5.5.0
    flushed_offset: int = 0  # only in the seal

    @property
    def min_timestamp(self) -> int:
        """Everything stored before this time is in log and queues on disk."""
        return max(0, min(self.physic_timestamp, self.logics_timestamp) - _SAFETY_MS)

    @property
    def min_timestamp_index(self) -> int:
        """As `min_timestamp`, but with the index files (4.9)."""
        return min(self.min_timestamp, self.index_timestamp)


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """The whole page."""
    times = _TIMES.pack(*checkpoint[:6])
    crc = _seal_crc(times, _SEAL_MAGIC, checkpoint.flushed_offset)
    seal = _SEAL.pack(_SEAL_MAGIC, checkpoint.flushed_offset, crc)
    return times + bytes(_SEAL_AT - len(times)) + seal


def decode_checkpoint(page: bytes) -> tuple[Checkpoint, bool]:
    """The checkpoint of a page, and whether it can be trusted.

    It cannot when the page is too short, or when a seal is there that does not fit the times.
    """
    if len(page) < _TIMES.size:
        return Checkpoint(), False
    times = page[: _TIMES.size]
    values = _TIMES.unpack(times)
    seal = page[_SEAL_AT:SIZE]
    if len(seal) < _SEAL.size or not any(seal):
        return Checkpoint._make((*values, 0)), all(value >= 0 for value in values)
    magic, flushed_offset, crc = _SEAL.unpack(seal)
    covered = times[:_EARLIER_BYTES] if magic == _EARLIER_MAGIC else times
    sealed = magic in (_SEAL_MAGIC, _EARLIER_MAGIC) and crc == _seal_crc(covered, magic, flushed_offset)
    return Checkpoint._make((*values, flushed_offset if sealed else 0)), sealed


def _seal_crc(times: bytes, magic: bytes, flushed_offset: int) -> int:
    return checksum(times + magic + flushed_offset.to_bytes(8, "big", signed=True))
