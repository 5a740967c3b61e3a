"""A log with a page cache and a disk: what a kill leaves, what a power cut leaves, and the recovery after either.

A record is 4 bytes of size, 4 of CRC and a payload. Recovery cuts behind the last whole record, as the store's does.
"""

from random import Random
from struct import Struct
from typing import Final
from zlib import crc32

from skyrocket.errors import SkyrocketError

_HEAD: Final = Struct(">II")
FILE_SIZE: Final = 4096


class DiskFull(SkyrocketError):
    """Nothing was written."""


class SimulatedLog:
    """Bytes from `first` on; those before `flushed_offset` survive a power cut."""

    def __init__(self, *, sync_flush: bool) -> None:
        self.sync_flush = sync_flush
        self.first = 0
        self.data = bytearray()
        self.flushed_offset = 0
        self.is_full = False

    @property
    def min_offset(self) -> int:
        return self.first

    @property
    def readable_offset(self) -> int:
        return self.first + len(self.data)

    @property
    def last_file_start(self) -> int:
        return max(self.readable_offset - 1, 0) // FILE_SIZE * FILE_SIZE

    @property
    def end_offset(self) -> int:
        return self.readable_offset

    @property
    def safe_offset(self) -> int:
        return self.flushed_offset if self.sync_flush else self.end_offset

    def raw(self, physical_offset: int, max_bytes: int) -> memoryview | None:
        at = physical_offset - self.first
        if at < 0 or at >= len(self.data):
            return None
        to_file_end = FILE_SIZE - physical_offset % FILE_SIZE
        return memoryview(bytes(self.data[at : at + min(max_bytes, to_file_end)]))

    def append(self, offset: int, data: bytes | memoryview) -> None:
        if self.is_full:
            raise DiskFull("no space left")
        if not self.data:
            self.first = self.flushed_offset = offset
        assert offset == self.end_offset, f"bytes of {offset} were appended at {self.end_offset}"
        self.data += data

    def append_record(self, payload: bytes) -> int:
        """Returns where it ends."""
        self.append(self.end_offset, _HEAD.pack(len(payload), crc32(payload)) + payload)
        return self.end_offset

    def cut(self, end_offset: int) -> None:
        """Drop what lies behind an offset."""
        del self.data[max(end_offset - self.first, 0) :]
        self.flushed_offset = min(self.flushed_offset, self.end_offset)

    def flush(self) -> None:
        self.flushed_offset = self.end_offset

    def lose_power(self, random: Random) -> None:
        """Of what was not flushed some first part is there, and its last bytes may be wrong."""
        unflushed = self.end_offset - self.flushed_offset
        kept = random.randint(0, unflushed)
        del self.data[len(self.data) - unflushed + kept :]
        if kept and random.random() < 0.5:
            self.data[-1] ^= 0xFF

    def recover(self) -> None:
        """Cut behind the last whole record, and force the rest to disk."""
        at = 0
        while at + _HEAD.size <= len(self.data):
            size, crc = _HEAD.unpack_from(self.data, at)
            payload = self.data[at + _HEAD.size : at + _HEAD.size + size]
            if len(payload) < size or crc32(payload) != crc:
                break
            at += _HEAD.size + size
        del self.data[at:]
        self.flush()

    def whole_records(self, start: int, end: int) -> bytes:
        """The bytes of the records from one that begins at `start` to the last that ends before `end`."""
        first = at = start - self.first
        while at + _HEAD.size <= end - self.first:
            size, _ = _HEAD.unpack_from(self.data, at)
            if at + _HEAD.size + size > end - self.first:
                break
            at += _HEAD.size + size
        return bytes(self.data[first:at])

    def payloads(self) -> list[bytes]:
        """All whole records."""
        found, at = [], 0
        while at + _HEAD.size <= len(self.data):
            size, _ = _HEAD.unpack_from(self.data, at)
            if at + _HEAD.size + size > len(self.data):
                break
            found.append(bytes(self.data[at + _HEAD.size : at + _HEAD.size + size]))
            at += _HEAD.size + size
        return found
