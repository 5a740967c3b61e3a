"""Which slaves have how much of the log, and who waits for them. Pure: no sockets, no clock.

A slave that was not heard of lately counts for nobody: its machine may be gone without a word, and the same slave may
have come back by another connection.

One wait covers a whole turn of the loop: senders wait for the end of the last record of their turn, not for their own.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

_FEWEST: Final = 2  # brokers that anybody waits for: the master and a slave


@dataclass(slots=True)
class ReplicaWait:
    """Somebody who waits until so many machines have the log up to an offset; `cancel` when it took too long."""

    end_offset: int
    required: int
    settled: Callable[[], None] | None  # None when nobody waits any more

    def cancel(self) -> None:
        self.settled = None


class Replicas:
    """What each connected slave has acknowledged. The master itself counts as one machine that has everything."""

    def __init__(self, is_heard: Callable[[Hashable], bool] = lambda slave: True) -> None:
        """`is_heard` says whether a slave was heard of lately."""
        self._is_heard = is_heard
        self._acknowledged: dict[Hashable, int] = {}
        self._waits: list[ReplicaWait] = []  # in the order of their offsets

    @property
    def connected(self) -> int:
        return len(self._acknowledged)

    def held_by(self, end_offset: int) -> int:
        """How many machines have everything before an offset, the master among them."""
        return 1 + sum(offset >= end_offset and self._is_heard(slave) for slave, offset in self._acknowledged.items())

    def in_sync(self, end_offset: int, max_gap_bytes: int) -> int:
        """How many machines are close to the log's end, the master among them."""
        return 1 + sum(
            end_offset - offset < max_gap_bytes and self._is_heard(slave)
            for slave, offset in self._acknowledged.items()
        )

    def best_gap(self, end_offset: int) -> int | None:
        """How many bytes the slave that is furthest ahead still lacks; None without a slave."""
        return end_offset - max(self._acknowledged.values()) if self._acknowledged else None

    def acknowledge(self, slave: Hashable, offset: int) -> None:
        """A slave has everything before an offset."""
        self._acknowledged[slave] = offset
        self._settle()

    def leave(self, slave: Hashable) -> None:
        """A slave is gone: what it acknowledged no longer counts for those who wait."""
        self._acknowledged.pop(slave, None)

    def wait(self, end_offset: int, required: int, settled: Callable[[], None]) -> ReplicaWait:
        """Call back, at once or later, when so many machines have everything before an offset."""
        assert not self._waits or end_offset >= self._waits[-1].end_offset, "waits come in the order of the log"
        if self.held_by(end_offset) >= required:
            settled()
            return ReplicaWait(end_offset, required, None)
        wait = ReplicaWait(end_offset, required, settled)
        self._waits.append(wait)
        return wait

    def _settle(self) -> None:
        """Tell those who have what they wait for, the first first; some wait for more brokers than others."""
        left: list[ReplicaWait] = []
        settled: list[ReplicaWait] = []
        for number, wait in enumerate(self._waits):
            held_by = self.held_by(wait.end_offset)
            if held_by < _FEWEST:  # nobody has this, so nobody has what comes after it
                left += [later for later in self._waits[number:] if later.settled is not None]
                break
            if wait.settled is not None:
                (settled if held_by >= wait.required else left).append(wait)
        self._waits = left
        for wait in settled:
            if wait.settled is not None:
                wait.settled()
