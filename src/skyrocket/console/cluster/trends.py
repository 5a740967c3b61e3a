"""Does a number rise or fall? Compared with what it was some minutes ago, as far as anybody has looked."""

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Final

_STEP_SECONDS: Final = 60.0
_STEPS: Final = 6  # the oldest mark is five to six minutes old
_MOST_KEYS: Final = 5000


class Trends:
    """Remembers a mark a minute of each number."""

    def __init__(self) -> None:
        self._marks: OrderedDict[Hashable, deque[tuple[float, int]]] = OrderedDict()

    def look(self, key: Hashable, value: int, at_seconds: float) -> None:
        """What it is now."""
        marks = self._marks.setdefault(key, deque(maxlen=_STEPS))
        self._marks.move_to_end(key)
        if not marks or at_seconds - marks[-1][0] >= _STEP_SECONDS:
            marks.append((at_seconds, value))
        if len(self._marks) > _MOST_KEYS:
            self._marks.popitem(last=False)

    def change(self, key: Hashable, value: int, at_seconds: float) -> int | None:
        """By how much it is more than at the oldest mark; None while that is the present one."""
        marks = self._marks.get(key)
        return None if not marks or at_seconds <= marks[0][0] else value - marks[0][1]
