"""What a master sends to one slave, as a state machine: reports, log and time go in, bytes to send come out.

waiting ──first report──▶ shipping ──no report for haHousekeepingInterval, or a wrong one──▶ ReplicaRefused
                          sends log bytes while there are any, and a heartbeat when it has been quiet
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from skyrocket.errors import SkyrocketError
from skyrocket.protocol.ha import TRANSFER, ReportReader


class ReplicaRefused(SkyrocketError):
    """The connection must be closed; the text says why and what to do."""


def refused_as_ahead(slave_end: int, end: int) -> ReplicaRefused:
    """What a slave hears whose log is longer than its master's."""
    return ReplicaRefused(
        f"the slave's log ends at {slave_end}, ours at {end}: it has records that this master lost or never "
        "had. Nothing was changed. Compare both logs (skyrocket inspect --compare), then keep the right one: "
        "make the slave the master, or empty its store directory so that it begins anew"
    )


class LogBytes(Protocol):
    """What of a master's log its slaves may have."""

    @property
    def min_offset(self) -> int: ...

    @property
    def readable_offset(self) -> int: ...

    @property
    def last_file_start(self) -> int: ...

    def raw(self, physical_offset: int, max_bytes: int) -> memoryview | None: ...


@dataclass(frozen=True, slots=True)
class TransferRules:
    """How a master ships; all times in seconds."""

    batch_bytes: int = 32 << 10
    catch_up_bytes: int = 1 << 20  # a slave that lacks more is sent so much at once; RocketMQ's takes up to 4 MiB
    heartbeat_seconds: float = 5.0
    silence_seconds: float = 20.0
    look_seconds: float = 5.0  # a log that grows without a word, from the transient pool, is looked at so often
    bytes_per_second: int = 0  # 0: as fast as the slave reads
    gather_seconds: float = 0.0  # what is appended within it goes together; 0: at once, because senders wait for it
    from_first_file: bool = False  # a slave without a log gets all of ours; RocketMQ's gets the newest file only


class MasterStream:
    """One slave's connection, seen from the master."""

    def __init__(self, log: LogBytes, rules: TransferRules, now: float) -> None:
        self._log = log
        self._rules = rules
        self._reports = ReportReader()
        self.last_heard = now
        self._last_sent = now
        self._budget = float(rules.bytes_per_second)
        self._budget_at = now
        self.next_offset = -1  # of the first byte that was not sent yet; -1 before the first report
        self.acknowledged_offset = -1  # what the slave has, as far as it said so; -1 before the first report
        self.sent_bytes = 0
        self._owes_since = now  # when bytes were sent to a slave that had acknowledged all before them

    def receive(self, data: bytes, now: float) -> None:
        """Take the slave's reports; after ReplicaRefused or ProtocolError the connection must be closed."""
        self.last_heard = now
        reported = self._read(data)
        if reported is None:
            return
        if self.next_offset < 0:
            self._begin(reported)
        elif not self.acknowledged_offset <= reported <= self.next_offset:
            raise ReplicaRefused(
                f"the slave reported {reported} after {self.acknowledged_offset}, "
                f"but was sent the log up to {self.next_offset}"
            )
        else:
            self.acknowledged_offset = reported

    def _read(self, data: bytes) -> int | None:
        """The newest report, or None."""
        return self._reports.receive(data)

    def _head(self, offset: int, size: int) -> bytes:
        """What goes before the bytes of a transfer; of a heartbeat for size 0."""
        return TRANSFER.pack(offset, size)

    def _first_start(self) -> int:
        """Where a slave without a log begins. RocketMQ: it gets no more than the newest file."""
        return self._log.min_offset if self._rules.from_first_file else self._log.last_file_start

    def _begin(self, reported: int) -> None:
        first, end = self._log.min_offset, self._log.readable_offset
        if reported > end:
            raise refused_as_ahead(reported, end)
        self.next_offset = reported or self._first_start()
        if self.next_offset < first:
            raise ReplicaRefused(
                f"the slave's log ends at {reported}, but ours begins at {first}: what lies between was deleted here. "
                "Empty the slave's store directory so that it begins anew"
            )
        self.acknowledged_offset = reported

    def is_heard(self, now: float, answer_seconds: float, idle_seconds: float) -> bool:
        """Whether the slave was heard of lately: who was sent bytes must answer soon, who was not at least sometimes.

        A machine that is gone without a word leaves a connection behind, for haHousekeepingInterval.
        """
        if now - self.last_heard > idle_seconds:
            return False
        owes = self.sent_bytes and self.acknowledged_offset < self.next_offset
        return not owes or now - max(self.last_heard, self._owes_since) <= answer_seconds

    def send(self, now: float) -> Sequence[bytes | memoryview]:
        """What to send now: one transfer, a heartbeat, or nothing; raises ReplicaRefused after a long silence."""
        if now - self.last_heard > self._rules.silence_seconds:
            raise ReplicaRefused(f"the slave said nothing for {self._rules.silence_seconds:g} s")
        if self.next_offset < 0:
            return ()
        room = self._room(now)
        body = self._log.raw(self.next_offset, room) if room > 0 else None
        if body:
            head = self._head(self.next_offset, len(body))
            if self.acknowledged_offset >= self.next_offset:
                self._owes_since = now
            self.next_offset += len(body)
            self._budget -= len(body)
            self.sent_bytes += len(body)
            self._last_sent = now
            return head, body
        if self.next_offset < self._log.min_offset:
            raise ReplicaRefused(
                f"the slave needs the log from {self.next_offset}, but ours begins at {self._log.min_offset}: "
                "the rest was deleted. Empty the slave's store directory so that it begins anew"
            )
        if now - self._last_sent >= self._rules.heartbeat_seconds:
            self._last_sent = now
            return (self._head(self.next_offset, 0),)
        return ()

    @property
    def lacks_much(self) -> bool:
        """Whether the log is so far ahead of what was sent that waiting for more saves nothing."""
        return self._log.readable_offset - self.next_offset > self._rules.catch_up_bytes

    def next_look(self, now: float) -> float:
        """Seconds after which `send` should be asked again although nothing was appended or reported."""
        quiet = self._last_sent + self._rules.heartbeat_seconds
        silent = self.last_heard + self._rules.silence_seconds
        pause = min(max(min(quiet, silent) - now, 0.0) + 0.001, self._rules.look_seconds)
        return min(pause, 0.1) if self._is_throttled() else pause

    def _is_throttled(self) -> bool:
        return bool(self._rules.bytes_per_second) and self.next_offset < self._log.readable_offset

    def _room(self, now: float) -> int:
        """How many bytes may be sent: a batch, and no more than a second's share is saved up."""
        batch, rate = self._rules.batch_bytes, self._rules.bytes_per_second
        if self.lacks_much:
            batch = max(batch, self._rules.catch_up_bytes)
        if not rate:
            return batch
        self._budget = min(self._budget + (now - self._budget_at) * rate, float(rate))
        self._budget_at = now
        return min(batch, int(self._budget))
