"""Rates from counters that only grow: offsets of queues now, and as they were before."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

_SHORTEST_SECONDS: Final = 1.0  # two looks closer together say little
_MOST_KEYS: Final = 20_000


class Speeds:
    """Remembers two looks at each counter."""

    def __init__(self) -> None:
        self._looks: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()
        self._rates: dict[Hashable, float] = {}

    def look(self, key: Hashable, total: int, at_seconds: float) -> float | None:
        """The rate since the look before, None after the first one; a counter that was set back begins anew."""
        before = self._looks.get(key)
        if before is None or total < before[1]:
            self._rates.pop(key, None)
        elif at_seconds - before[0] < _SHORTEST_SECONDS:
            return self._rates.get(key)
        else:
            self._rates[key] = (total - before[1]) / (at_seconds - before[0])
        self._looks[key] = (at_seconds, total)
        self._looks.move_to_end(key)
        if len(self._looks) > _MOST_KEYS:
            gone, _ = self._looks.popitem(last=False)
            self._rates.pop(gone, None)
        return self._rates.get(key)

    def rate(self, key: Hashable) -> float | None:
        """As the last look said."""
        return self._rates.get(key)
