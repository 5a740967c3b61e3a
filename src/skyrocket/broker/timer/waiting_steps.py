"""The steps of the wheel for which messages wait."""

import heapq
from collections.abc import Iterable


class WaitingSteps:
    """Times of steps, each once; one that was taken up counts as waiting until it is `finished`."""

    def __init__(self, times_ms: Iterable[int] = ()) -> None:
        self._heap = sorted(times_ms)
        self._times = set(self._heap)

    def __contains__(self, time_ms: int) -> bool:
        return time_ms in self._times

    @property
    def first_ms(self) -> int | None:
        """The soonest that was not taken up."""
        return self._heap[0] if self._heap else None

    def in_order(self) -> list[int]:
        """All, soonest first."""
        return sorted(self._times)

    def soonest(self, from_ms: int, most: int) -> list[int]:
        """The first ones from a time on, soonest first."""
        return heapq.nsmallest(most, (time_ms for time_ms in self._times if time_ms >= from_ms))

    def add_all(self, times_ms: Iterable[int]) -> None:
        """Somebody waits for these."""
        times, heap = self._times, self._heap
        for time_ms in times_ms:
            if time_ms not in times:
                times.add(time_ms)
                heapq.heappush(heap, time_ms)

    def has_any_of(self, times_ms: Iterable[int]) -> bool:
        """Whether somebody waits for one of these."""
        return not self._times.isdisjoint(times_ms)

    def take_up(self) -> int:
        """Begin with the soonest."""
        return heapq.heappop(self._heap)

    def finished(self, time_ms: int) -> None:
        """Nobody waits for it any more."""
        self._times.discard(time_ms)
