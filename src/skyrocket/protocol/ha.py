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
    body: bytes


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
    """What a slave reads; it holds at most one incomplete transfer."""

    def __init__(self, max_body_size: int = MAX_BODY_SIZE) -> None:
        self._max_body_size = max_body_size
        self._pending = bytearray()

    @property
    def pending_size(self) -> int:
        """Bytes held of a transfer that is not complete."""
        return len(self._pending)

    def receive(self, data: bytes) -> list[Transfer]:
        """All transfers that are now complete; raises ProtocolError."""
        self._pending += data
        transfers: list[Transfer] = []
        at, end = 0, len(self._pending)
        with memoryview(self._pending) as view:
            while end - at >= TRANSFER.size:
                offset, size = TRANSFER.unpack_from(view, at)
                if offset < 0 or not 0 <= size <= self._max_body_size:
                    raise ProtocolError(f"a master announced {size} bytes at offset {offset}")
                body_at = at + TRANSFER.size
                if end - body_at < size:
                    break
                transfers.append(Transfer(offset, view[body_at : body_at + size].tobytes()))
                at = body_at + size
        del self._pending[:at]
        return transfers
