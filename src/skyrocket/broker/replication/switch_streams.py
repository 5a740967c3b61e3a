"""`MasterStream` and `SlaveStream` for sets whose master a controller chooses: RocketMQ's auto-switch protocol.

slave   hello ─▶ the master's epochs ─▶ where do both logs agree? ─▶ there: report it, then as with the plain protocol
                                                                 ─▶ before our end: `CutNeeded`, it must be cut first
"""

from collections.abc import Callable, Sequence
from typing import Final

from skyrocket.broker.replication.master_stream import LogBytes, MasterStream, TransferRules
from skyrocket.broker.replication.slave_stream import MasterLeft, ReplicaLog, ReportRules, SlaveStream
from skyrocket.broker.state.epochs import Epochs, consistent_point
from skyrocket.format.epochs import Epoch
from skyrocket.protocol.auto_switch import (
    SLAVE_REPORT,
    TRANSFER,
    TRANSFERRING,
    MasterHello,
    MasterWordReader,
    Piece,
    SlaveHello,
    SlaveWordReader,
)
from skyrocket.protocol.errors import ProtocolError

_NOBODY: Final = SlaveHello(-1)


class CutNeeded(MasterLeft):
    """This log went another way than its master's; what lies behind `end_offset` must go before it can be followed."""

    def __init__(self, end_offset: int) -> None:
        super().__init__(f"the log must be cut at {end_offset}: behind it the master's went another way")
        self.end_offset = end_offset


class SwitchMasterStream(MasterStream):
    """One slave's connection, seen from a master of an epoch."""

    def __init__(
        self, log: LogBytes, rules: TransferRules, now: float, epochs: Epochs, confirm_offset: Callable[[], int]
    ) -> None:
        super().__init__(log, rules, now)
        self._words = SlaveWordReader()
        self._epochs = epochs
        self._confirm_offset = confirm_offset
        self.slave = _NOBODY
        self._answer = b""

    def _read(self, data: bytes) -> int | None:
        hello, reported = self._words.receive(data)
        if hello is not None:
            if self.slave is not _NOBODY:
                raise ProtocolError("a slave greeted twice")
            self.slave = hello
            self._answer = MasterHello(self._log.readable_offset, self._epochs.all).encode()
        elif reported is not None and self.slave is _NOBODY:
            raise ProtocolError("a slave reported before its hand-shake")
        return reported

    def send(self, now: float) -> Sequence[bytes | memoryview]:
        answer, self._answer = self._answer, b""
        if answer:
            return (answer,)
        return super().send(now)

    def _head(self, offset: int, size: int) -> bytes:
        epoch, _ = self._epochs.at(offset)
        return TRANSFER.pack(TRANSFERRING, size, offset, *epoch, self._confirm_offset())

    def _first_start(self) -> int:
        return self._log.last_file_start if self.slave.from_last_file else self._log.min_offset

    def _room(self, now: float) -> int:
        """No transfer spans two epochs."""
        _, end = self._epochs.at(self.next_offset)
        room = super()._room(now)
        return room if end is None else min(room, end - self.next_offset)


class SwitchSlaveStream(SlaveStream):
    """The connection to a master of an epoch, seen from the slave."""

    def __init__(self, log: ReplicaLog, rules: ReportRules, now: float, epochs: Epochs, hello: SlaveHello) -> None:
        super().__init__(log, rules, now)
        self._words = MasterWordReader()
        self._epochs = epochs
        self._hello = hello
        self._has_agreed = False
        self._master_confirms = 0

    @property
    def confirm_offset(self) -> int:
        """Before which all members of the set have the log, as far as this one has it too."""
        return min(self._master_confirms, self._log.end_offset)

    def begin(self, now: float) -> bytes:
        """Before all else: who this is. What the log has is reported when the master has told its epochs."""
        self.last_report = now
        return self._hello.encode()

    def receive(self, data: bytes, now: float) -> bytes:
        """Raises CutNeeded, besides what the plain one raises."""
        self.last_heard = now
        agreed = b""
        for word in self._words.receive(data):
            if isinstance(word, MasterHello):
                agreed = self._agree(word, now)
            else:
                self._take_piece(word)
        return agreed + self.progress(now)

    def _agree(self, master: MasterHello, now: float) -> bytes:
        others, end = tuple(Epoch(*epoch) for epoch in master.epochs), self._log.end_offset
        point = consistent_point(self._epochs.all, end, others, master.end_offset)
        if point is None:
            raise MasterLeft(
                f"this log (epochs {_shown(self._epochs.all)}, end {end}) and the master's (epochs {_shown(others)}, "
                f"end {master.end_offset}) have nothing in common. Nothing was changed. Empty this broker's store "
                "directory so that it begins anew, or take it out of the set"
            )
        if point < end:
            raise CutNeeded(point)
        self._epochs.cut(point, also_at_end=others)
        self._has_agreed = True
        return self._report(point, now)

    def _take_piece(self, piece: Piece) -> None:
        if not self._has_agreed:
            raise MasterLeft("the master sent bytes before both logs were compared")
        if piece.epoch > self._epochs.last.number and (piece.body or piece.offset >= 0):
            self._epochs.begin(piece.epoch, piece.epoch_start)
        self._take(piece.offset if piece.offset >= 0 else self._log.end_offset, piece.body)
        self._master_confirms = max(self._master_confirms, piece.confirm_offset)

    def progress(self, now: float) -> bytes:
        return super().progress(now) if self._has_agreed else b""

    def _word(self, offset: int) -> bytes:
        return SLAVE_REPORT.pack(TRANSFERRING, offset) if self._has_agreed else b""


def _shown(epochs: Sequence[Epoch]) -> str:
    return ", ".join(f"{number} from {start}" for number, start in epochs[-3:]) or "none"
