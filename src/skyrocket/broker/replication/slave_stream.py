"""What a slave does with its master's bytes, as a state machine: bytes and time go in, reports come out.

begin ─▶ first report ─▶ bytes are appended where the log ends as they come, each time with a report of its new end
                         a report every few seconds in any case; a master that falls silent is left
"""

from dataclasses import dataclass
from typing import Protocol

from skyrocket.errors import SkyrocketError
from skyrocket.protocol.ha import REPORT, TransferReader


class MasterLeft(SkyrocketError):
    """The connection must be closed and tried again later; the text says why."""


class ReplicaLog(Protocol):
    """A slave's own log."""

    @property
    def end_offset(self) -> int:
        """Where it ends; 0 when nothing was ever appended."""

    @property
    def safe_offset(self) -> int:
        """What may be acknowledged: its end, or with SYNC_FLUSH what the disk has."""

    def append(self, offset: int, data: bytes | memoryview) -> None:
        """Append bytes that begin at the log's end."""


@dataclass(frozen=True, slots=True)
class ReportRules:
    """All times in seconds."""

    report_seconds: float = 5.0
    silence_seconds: float = 20.0
    retry_seconds: float = 5.0  # between two attempts to find the master


class SlaveStream:
    """The connection to the master, seen from the slave."""

    def __init__(self, log: ReplicaLog, rules: ReportRules, now: float) -> None:
        self._log = log
        self._rules = rules
        self._transfers = TransferReader()
        self.last_heard = now
        self.last_report = now
        self._reported = -1
        self.received_bytes = 0
        self.received_from_master = False  # a transfer or heartbeat: the master has let this slave in

    def begin(self, now: float) -> bytes:
        """The first report: where the master shall start."""
        return self._report(self._log.end_offset, now)

    def receive(self, data: bytes, now: float) -> bytes:
        """Append what came and report it; raises MasterLeft, ProtocolError, and what the log raises."""
        self.last_heard = now
        for offset, body in self._transfers.receive(data):
            self._take(offset, body)
        return self.progress(now)

    def _take(self, offset: int, body: bytes | memoryview) -> None:
        self.received_from_master = True
        end = self._log.end_offset
        if end and offset != end:
            raise MasterLeft(f"the master sent bytes of offset {offset}, but this log ends at {end}")
        if body:
            self._log.append(offset, body)
        self.received_bytes += len(body)

    def progress(self, now: float) -> bytes:
        """A report if there is something to report, else nothing."""
        safe = self._log.safe_offset
        return self._report(safe, now) if safe > self._reported and self._log.end_offset else b""

    def due(self, now: float) -> bytes:
        """A report if it is time for one; raises MasterLeft when the master fell silent."""
        if now - self.last_heard > self._rules.silence_seconds:
            raise MasterLeft(f"the master said nothing for {self._rules.silence_seconds:g} s")
        if now - self.last_report >= self._rules.report_seconds:
            return self._report(max(self._log.safe_offset, self._reported), now)
        return b""

    def next_look(self, now: float) -> float:
        """Seconds after which `due` should be asked."""
        report = self.last_report + self._rules.report_seconds
        silent = self.last_heard + self._rules.silence_seconds
        return max(min(report, silent) - now, 0.0) + 0.001

    def _report(self, offset: int, now: float) -> bytes:
        self.last_report = now
        self._reported = offset
        return self._word(offset)

    def _word(self, offset: int) -> bytes:
        return REPORT.pack(offset)
