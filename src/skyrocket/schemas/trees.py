"""Values as JSON can hold them, within bounds.

Whole numbers beyond 2^53, which browsers cannot count to, decimals, times and NaN are text; bytes are base64.
"""

import base64
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any, Final

from skyrocket.schemas.numbered import BodyUnreadable

MOST_VALUES: Final = 100_000
MOST_LEVELS: Final = 100
_LARGEST_OF_BROWSERS: Final = (1 << 53) - 1


class Budget:
    """How many values a tree may still get."""

    def __init__(self, values: int = MOST_VALUES) -> None:
        self._left = values

    def take(self) -> None:
        """One more; raises BodyUnreadable."""
        self._left -= 1
        if self._left < 0:
            raise BodyUnreadable(f"the body has more than {MOST_VALUES:,} values")


def tree(value: Any, budget: Budget, level: int = 0) -> Any:
    """What a library has read, for JSON; raises BodyUnreadable."""
    budget.take()
    if level > MOST_LEVELS:
        raise BodyUnreadable(f"the body nests deeper than {MOST_LEVELS} levels")
    if isinstance(value, Mapping):
        return {str(name): tree(each, budget, level + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [tree(each, budget, level + 1) for each in value]
    return leaf(value)


def leaf(value: Any) -> Any:
    """One value without parts."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST_OF_BROWSERS else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)  # Decimal, UUID
