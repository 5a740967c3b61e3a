"""Of a timer that waits for long there are several copies in the queue: it rolls, and only the newest copy waits.

Whoever has rolled them knows. A broker that begins with the queue of another (a slave that was made the master) reads
it here: the copy that has rolled most often is the newest.
"""

from skyrocket.format.properties import find_property, whole_number
from skyrocket.format.property_bytes import REAL_TOPIC, TIMER_ROLLS, UNIQUE_KEY

_Timer = tuple[bytes, bytes]  # topic and unique key


class RolledCopies:
    """How often each timer has rolled; timers that never did take no room."""

    def __init__(self) -> None:
        self._rolls: dict[_Timer, int] = {}

    def note(self, properties: bytes) -> None:
        """A copy of a timer."""
        rolls = _rolls_of(properties)
        timer = _timer_of(properties) if rolls else None
        if timer is not None:
            self._rolls[timer] = max(rolls, self._rolls.get(timer, 0))

    def has_newer(self, properties: bytes) -> bool:
        """Whether there is a copy that has rolled more often."""
        if not self._rolls:
            return False
        timer = _timer_of(properties)
        return timer is not None and self._rolls.get(timer, 0) > _rolls_of(properties)


def _rolls_of(properties: bytes) -> int:
    return whole_number(find_property(properties, TIMER_ROLLS)) or 0 if TIMER_ROLLS in properties else 0


def _timer_of(properties: bytes) -> _Timer | None:
    key = find_property(properties, UNIQUE_KEY)
    return None if key is None else (find_property(properties, REAL_TOPIC) or b"", key)
