"""The epochs of a broker's own log: which master wrote what, and up to where another log is the same.

RocketMQ leaves out an epoch that begins where the one before it began: a log that went another way in that one then
looks the same. Here both are kept; RocketMQ reads such a file, and such a hand-shake, as it should.
"""

from collections.abc import Sequence
from typing import Protocol

from skyrocket.format.epochs import Epoch


class EpochFile(Protocol):
    """Where epochs are kept."""

    def load(self) -> tuple[Epoch, ...] | None: ...

    def save(self, content: tuple[Epoch, ...], /) -> None: ...


class NoEpochFile:
    """Of a log that lives in memory."""

    def load(self) -> tuple[Epoch, ...] | None:
        return None

    def save(self, content: tuple[Epoch, ...], /) -> None: ...


class Epochs:
    """Of one log; every change is on disk when the method returns."""

    def __init__(self, file: EpochFile | None = None) -> None:
        self._file = file or NoEpochFile()
        self._all: tuple[Epoch, ...] = ()

    def load(self) -> None:
        """Take what the file says; raises CorruptFile."""
        self._all = self._file.load() or ()

    @property
    def all(self) -> tuple[Epoch, ...]:
        return self._all

    @property
    def last(self) -> Epoch:
        """The newest; number -1 when there is none, as RocketMQ has it."""
        return self._all[-1] if self._all else Epoch(-1, 0)

    def begin(self, number: int, start_offset: int) -> None:
        """Bytes from this offset on are of this epoch. What the log has from there on of another one must be gone."""
        kept = [epoch for epoch in self._all if epoch.number < number and epoch.start_offset <= start_offset]
        self._keep((*kept, Epoch(number, start_offset)))

    def cut(self, end_offset: int, also_at_end: Sequence[Epoch] = ()) -> None:
        """The log ends here; an epoch that begins at its end stays only if another log is known to have it."""
        self._keep(
            tuple(
                epoch
                for epoch in self._all
                if epoch.start_offset < end_offset or (epoch.start_offset == end_offset and epoch in also_at_end)
            )
        )

    def forget_before(self, first_offset: int) -> None:
        """The log begins here: its older files are gone."""
        ends = [later.start_offset for later in self._all[1:]]
        gone = sum(end <= first_offset for end in ends)
        self._keep(self._all[gone:])

    def at(self, offset: int) -> tuple[Epoch, int | None]:
        """The epoch of a byte, and where that ends (None: it is the newest); bytes before all are of the first."""
        for epoch, later in zip(self._all, self._all[1:], strict=False):
            if offset < later.start_offset:
                return epoch, later.start_offset
        return self.last, None

    def _keep(self, epochs: tuple[Epoch, ...]) -> None:
        if epochs != self._all:
            self._file.save(epochs)
            self._all = epochs


def consistent_point(own: Sequence[Epoch], own_end: int, others: Sequence[Epoch], others_end: int) -> int | None:
    """Up to where this log is the same as another one, by their epochs; None when they have nothing in common."""
    if not own:  # a new replica, or one of a set that had no controller: what lies before all epochs is common
        return own_end if own_end <= (others[0].start_offset if others else others_end) else None
    ends = dict(zip(others, _ends(others, others_end), strict=True))
    for epoch, end in reversed(list(zip(own, _ends(own, own_end), strict=True))):
        if epoch in ends:
            return min(end, ends[epoch])
    if others and own[0].start_offset == others[0].start_offset == 0:
        return 0  # each wrote its first record itself
    return None


def _ends(epochs: Sequence[Epoch], end_offset: int) -> list[int]:
    """Where each epoch ends in a log that ends here; one that lost its newest bytes may end before its last epochs."""
    return [min(later.start_offset, end_offset) for later in epochs[1:]] + [end_offset] * bool(epochs)
