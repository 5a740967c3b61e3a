"""What the scan of the commit log found out: needed by everything that points into the log."""

from bisect import bisect_right
from dataclasses import dataclass, field


@dataclass(slots=True)
class LogExtent:
    """From where to where the log has records, and which places inside are damaged."""

    start: int
    end: int  # behind the last intact record or blank
    records: int = 0
    first_store_timestamp: int = 0
    last_store_timestamp: int = 0  # the latest: clocks step back
    tail_lost: bool = False  # something says that there were records behind the end
    _damage_starts: list[int] = field(default_factory=list)
    _damage_ends: list[int] = field(default_factory=list)

    def mark_damaged(self, ranges: list[tuple[int, int]]) -> None:
        """Remember ranges of physical offsets that are known to be damaged: they are reported once, not thrice."""
        for start, end in sorted(ranges):
            self._damage_starts.append(start)
            self._damage_ends.append(end)

    def is_damaged(self, physical_offset: int) -> bool:
        """Whether a place lies in a range that was reported already."""
        at = bisect_right(self._damage_starts, physical_offset) - 1
        return at >= 0 and physical_offset < self._damage_ends[at]
