"""Which queue offset a record has when its own word does not fit: no checksum covers that field.

The records of a queue are numbered one after the other. So a number counts as right when it follows the entries before
it, or when two records agree: as many numbers lie between them as records. One record against its neighbours is wrong.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from skyrocket.format.record import SMALLEST_RECORD


@dataclass(slots=True)
class Doubts:
    """Records of one queue, next to each other, whose numbers have not been confirmed yet."""

    means_own: Callable[[int, int], bool]  # whether a record of the queue has this place and size
    expected: int | None = None  # the number of the first if all is in order; None where nothing is known
    entries: list[bytes] = field(default_factory=list)
    claimed: list[int] = field(default_factory=list)
    made_again_at: int | None = None  # the topic was deleted and made again: its first record since then

    def add(self, entry: bytes, claimed: int) -> None:
        self.entries.append(entry)
        self.claimed.append(claimed)

    def take(self) -> list[bytes]:
        """The entries of the records; nothing is held any more."""
        entries, self.entries, self.claimed, self.expected = self.entries, [], [], None
        return entries


def is_possible(number: int, physical_offset: int) -> bool:
    """Whether there was room in the log for that many records before this one."""
    return 0 <= number <= physical_offset // SMALLEST_RECORD


def agreed_numbers(expected: int | None, claimed: Sequence[int], physical_offset: int) -> list[int] | None:
    """The numbers of records in a row, when the newest agrees with what is expected or with one before it; else None.

    Those before the first that agrees follow what is expected. `physical_offset` is the place of the newest.
    """
    newest = len(claimed) - 1
    if not is_possible(claimed[newest], physical_offset):
        return None
    base = claimed[newest] - newest
    if base == expected and newest:
        return [base + place for place in range(newest + 1)]
    partner = next((place for place in range(newest) if claimed[place] - place == base), None)
    if partner is None:
        return None
    known = expected if expected is not None and expected + partner <= base + partner else base
    return [max(known + place, 0) for place in range(partner)] + [base + place for place in range(partner, newest + 1)]


def likely_numbers(expected: int | None, claimed: Sequence[int], physical_offset: int) -> list[int]:
    """The numbers of records in a row that nothing confirms."""
    first = claimed[0]
    if expected is None:
        expected = first if is_possible(first, physical_offset) else 0
    elif len(claimed) == 1 and first == 0 and expected & (expected - 1):
        return [0]  # the topic was deleted and made again: no single bit turns the expected number into 0
    return [expected + place for place in range(len(claimed))]
