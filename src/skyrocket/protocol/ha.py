"""The byte stream between a master and its slave: log bytes one way, reports of progress the other. Never waits.

    slave ─▶ master    8  where the slave's log ends: its first report asks for a start, all later ones acknowledge
    master ─▶ slave    8  physical offset of the first byte   4  size (0: a heartbeat)   size  bytes of the log

There is no other framing, no greeting and no error: who disagrees closes the connection.
"""

from struct import Struct
from typing import Final, NamedTuple

from skyrocket.protocol.errors import ProtocolError

REPORT: Final = Struct(">q")
TRANSFER: Final = Struct(">qi")

MAX_BODY_SIZE: Final = 4 << 20  # RocketMQ's slave has a buffer of this size, so its master cannot send more


class Transfer(NamedTuple):
    """Bytes of the master's log that begin at a physical offset; a heartbeat has none."""

    offset: int
    body: bytes | memoryview


class ReportReader:
    """What a master reads: of all reports that came only the newest counts."""

    def __init__(self) -> None:
        self._pending = b""

    def receive(self, data: bytes) -> int | None:
        """The newest complete report, or None; raises ProtocolError."""
        self._pending += data
        whole = len(self._pending) // REPORT.size * REPORT.size
        if not whole:
            return None
        (offset,) = REPORT.unpack_from(self._pending, whole - REPORT.size)
        self._pending = self._pending[whole:]
        if offset < 0:
            raise ProtocolError(f"a slave reported offset {offset}")
        return int(offset)


class TransferReader:
    """What a slave reads: the bytes of a transfer as they come, so that none are held back until it is complete."""

    def __init__(self, max_body_size: int = MAX_BODY_SIZE) -> None:
        self._max_body_size = max_body_size
        self._head = b""  # what came of the head of the next transfer
        self._offset = 0  # of the next byte of the transfer that has begun
        self._left = 0  # how many bytes of it are to come

    @property
    def pending_size(self) -> int:
        """Bytes that are known to be missing: of a head that has begun, or of a transfer."""
        return self._left or (TRANSFER.size - len(self._head) if self._head else 0)

    def receive(self, data: bytes) -> list[Transfer]:
        """Transfers and parts of them, as views of the data; raises ProtocolError."""
        view, at, end = memoryview(data), 0, len(data)
        transfers: list[Transfer] = []
        while at < end:
            if not self._left:
                missing = TRANSFER.size - len(self._head)
                self._head += data[at : at + missing]
                at += missing
                if len(self._head) == TRANSFER.size and not self._begin():
                    transfers.append(Transfer(self._offset, b""))
                continue
            body = view[at : at + self._left]
            transfers.append(Transfer(self._offset, body))
            at += len(body)
            self._offset += len(body)
            self._left -= len(body)
        return transfers

    def _begin(self) -> int:
        """How many bytes the transfer has whose head is complete."""
        self._offset, self._left = TRANSFER.unpack(self._head)
        self._head = b""
        if self._offset < 0 or not 0 <= self._left <= self._max_body_size:
            raise ProtocolError(f"a master announced {self._left} bytes at offset {self._offset}")
        return self._left
