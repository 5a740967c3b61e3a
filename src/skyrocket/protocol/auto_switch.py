"""The byte stream between a master that a controller chose and its slaves: `protocol.ha` with epochs. Never waits.

    slave ─▶ master    4 state (1)  2 from the last file  2 learner  8 the slave's id                    hand-shake
                       4 state (2)  8 where the slave's log ends                                          report
    master ─▶ slave    4 state (1)  4 size  8 where the log ends  4 last epoch    12 each: 4 epoch  8 start
                       4 state (2)  4 size  8 offset  4 epoch  8 its start  8 confirm offset    size  bytes of the log

The slave speaks first. The master answers with its epochs, the slave reports where both logs agree, and from there on
it is as with the plain protocol. A transfer never spans two epochs; one of size 0 is a heartbeat.
"""

from struct import Struct
from typing import Final, NamedTuple

from skyrocket.protocol.errors import ProtocolError
from skyrocket.protocol.ha import MAX_BODY_SIZE

HANDSHAKE: Final = 1
TRANSFERRING: Final = 2

STATE: Final = Struct(">i")
SLAVE_HANDSHAKE: Final = Struct(">ihhq")
SLAVE_REPORT: Final = Struct(">iq")
MASTER_HANDSHAKE: Final = Struct(">iiqi")
EPOCH: Final = Struct(">iq")
TRANSFER: Final = Struct(">iiqiqq")


class SlaveHello(NamedTuple):
    """What a slave says first."""

    broker_id: int
    from_last_file: bool = False
    is_learner: bool = False

    def encode(self) -> bytes:
        return SLAVE_HANDSHAKE.pack(HANDSHAKE, self.from_last_file, self.is_learner, self.broker_id)


class MasterHello(NamedTuple):
    """What a master answers: where its log ends, and its epochs with their starts."""

    end_offset: int
    epochs: tuple[tuple[int, int], ...]

    def encode(self) -> bytes:
        body = b"".join(EPOCH.pack(*epoch) for epoch in self.epochs)
        last = self.epochs[-1][0] if self.epochs else -1
        return MASTER_HANDSHAKE.pack(HANDSHAKE, len(body), self.end_offset, last) + body


class Piece(NamedTuple):
    """Bytes of a transfer as they came, with what its head says; a heartbeat has none."""

    offset: int
    body: bytes | memoryview
    epoch: int
    epoch_start: int
    confirm_offset: int


class SlaveWordReader:
    """What a master reads: a hand-shake, then reports of which only the newest counts."""

    def __init__(self) -> None:
        self._pending = b""

    def receive(self, data: bytes) -> tuple[SlaveHello | None, int | None]:
        """A hand-shake and the newest report, as far as they came; raises ProtocolError."""
        self._pending += data
        hello: SlaveHello | None = None
        reported: int | None = None
        while len(self._pending) >= STATE.size:
            (state,) = STATE.unpack_from(self._pending)
            layout = {HANDSHAKE: SLAVE_HANDSHAKE, TRANSFERRING: SLAVE_REPORT}.get(state)
            if layout is None:
                raise ProtocolError(f"a slave is in state {state}: it does not speak as one of a controller's set")
            if len(self._pending) < layout.size:
                break
            if state == HANDSHAKE:
                _, from_last, learner, broker_id = SLAVE_HANDSHAKE.unpack_from(self._pending)
                hello, reported = SlaveHello(broker_id, from_last == 1, learner == 1), None
            else:
                _, reported = SLAVE_REPORT.unpack_from(self._pending)
            self._pending = self._pending[layout.size :]
        if reported is not None and reported < 0:
            raise ProtocolError(f"a slave reported offset {reported}")
        return hello, reported


class MasterWordReader:
    """What a slave reads: one hand-shake, then the bytes of transfers as they come."""

    def __init__(self) -> None:
        self._head = b""
        self._current = Piece(0, b"", 0, 0, 0)  # offset: of the next byte of the transfer that has begun
        self._left = 0  # bytes of it that are to come
        self._has_greeted = False

    def receive(self, data: bytes) -> list[MasterHello | Piece]:
        """Raises ProtocolError."""
        found: list[MasterHello | Piece] = []
        view, at, end = memoryview(data), 0, len(data)
        while at < end:
            if self._left:
                body = view[at : at + self._left]
                found.append(self._current._replace(body=body))
                at += len(body)
                self._left -= len(body)
                self._current = self._current._replace(offset=self._current.offset + len(body))
                continue
            missing = self._missing()
            self._head += data[at : at + missing]
            at += missing
            word = self._begin() if not self._missing() else None
            if word is not None:
                found.append(word)
        return found

    def _missing(self) -> int:
        """How many bytes of a head, or of a hand-shake, are to come."""
        layout = TRANSFER if self._has_greeted else MASTER_HANDSHAKE
        missing = layout.size - len(self._head)
        if missing > 0 or self._has_greeted:
            return max(missing, 0)
        state, size, _, _ = MASTER_HANDSHAKE.unpack_from(self._head)
        if state != HANDSHAKE or not 0 <= size <= MAX_BODY_SIZE or size % EPOCH.size:
            raise ProtocolError(f"a master answered the hand-shake in state {state}, with {size} bytes of epochs")
        return MASTER_HANDSHAKE.size + int(size) - len(self._head)

    def _begin(self) -> MasterHello | Piece | None:
        """What a head that is complete says by itself."""
        head, self._head = self._head, b""
        if not self._has_greeted:
            self._has_greeted = True
            _, _, end_offset, _ = MASTER_HANDSHAKE.unpack_from(head)
            return MasterHello(end_offset, tuple(EPOCH.iter_unpack(head[MASTER_HANDSHAKE.size :])))
        state, size, offset, epoch, epoch_start, confirm = TRANSFER.unpack(head)
        if state != TRANSFERRING or offset < -1 or not 0 <= size <= MAX_BODY_SIZE:
            raise ProtocolError(f"a master announced {size} bytes at offset {offset} in state {state}")
        self._current, self._left = Piece(offset, b"", epoch, epoch_start, confirm), size
        return None if size else self._current
