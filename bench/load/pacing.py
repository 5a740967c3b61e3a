"""When requests start: as soon as there is room (closed loop), or at times fixed in advance (open loop)."""

from typing import Protocol


class Pacing(Protocol):
    """Gives the start of the next request, from which its latency counts."""

    def start_of_next(self, now: float) -> float | None:
        """The start, or None when nothing is due yet."""

    def overdue(self, now: float) -> int:
        """How many requests should have been sent by now and were not."""


class ClosedLoop:
    """The next request starts when an answer has made room: the server sets the pace, so a stall hides requests."""

    def start_of_next(self, now: float) -> float | None:
        return now

    def overdue(self, now: float) -> int:
        return 0


class OpenLoop:
    """A request every `interval` seconds, whether the server keeps up or not.

    The latency counts from the time at which the request was due, not from when it could be sent: what waits behind a
    stall is part of the stall (the correction for coordinated omission).
    """

    def __init__(self, first_at: float, interval: float) -> None:
        self._next_at = first_at
        self._interval = interval

    def start_of_next(self, now: float) -> float | None:
        due = self._next_at
        if due > now:
            return None
        self._next_at = due + self._interval
        return due

    def overdue(self, now: float) -> int:
        return max(int((now - self._next_at) / self._interval) + 1, 0) if now >= self._next_at else 0
