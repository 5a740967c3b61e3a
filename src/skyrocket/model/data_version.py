"""How often a table of the broker was changed, and when last: the newer of two copies is the one to keep."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from skyrocket.fastjson.bean import SINCE_5


@dataclass(frozen=True, slots=True, order=True)
class DataVersion:
    """Compared by state version (term of the master), then counter, then time."""

    state_version: Annotated[int, SINCE_5] = 0
    counter: int = 0
    timestamp: int = 0
    unknown: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def next(self, now_ms: int) -> "DataVersion":
        """The version after one more change."""
        return replace(self, counter=self.counter + 1, timestamp=now_ms)
