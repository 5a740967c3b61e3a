"""A turn of the event loop: what is handled in it, and the answers that leave with it.

    data of A, little ─▶ handlers ─────────────────────────┐
    data of B, little ─▶ handlers ─────────────────────────┤
    data of C, much   ─▶ ring ─▶ when all sockets were read├─▶ callbacks of the turn's end (the broker stores all
                         ▲   └─▶ a few requests each ──────┘   sends as one group) ─▶ one write each
                         └─────── whoever has more left, and whoever was not reached: first in the next turn

With limits a turn is short whatever comes, and however many bring it: what is little is handled as it comes as long as
the turn has room, and those who bring much share the rest of its time by turns. So nobody waits for more than a round
of the ring.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from time import perf_counter  # how long work takes, whatever clock the program was given
from typing import Final, Protocol

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import RequestError
from skyrocket.remoting.limits import TurnLimits

_logger = logging.getLogger(__name__)

_SLICE: Final = 64  # requests that one connection may begin before the next one, when it is alone in the ring
_SLICE_AT_LEAST: Final = 16
_MANY: Final = 8  # sends that wait for the end: one more look at the sockets costs less than a turn for the next ones


class Speaker(Protocol):
    """Who has something to write when the turn ends."""

    def flush(self) -> None: ...


class InRing(Protocol):
    """Who has received more than can be handled at once."""

    def take_slice(self, most: int) -> tuple[int, bool]:
        """Handle so many requests at most; how many it were, and whether it wants to stay in the ring."""


class LeftWaiting(Protocol):
    """Who has requests that were read and could not be begun."""

    def refuse_backlog(
        self, overdue: Callable[[RemotingCommand, int, int], RequestError | None], not_before_ms: int
    ) -> bool: ...


class Turn:
    """All that one look at the sockets brought, from all connections of a server or client.

    The end is scheduled with `call_soon` by the first connection that has something to say. Both uvloop and asyncio run
    it after every socket that was ready has been read, and before the sockets are asked again.
    """

    def __init__(self, limits: TurnLimits | None = None) -> None:
        self.limits = limits
        self.number = 0
        self.until = 0.0  # when it has lasted long enough; 0: it has not begun
        self.read_size_left = 0  # bytes that may still be brought into it
        self.taken = 0  # requests that were taken in rows and wait for its end
        self.looks_again = False  # the sockets are read once more before it ends
        self.ring: deque[InRing] = deque()  # those who wait for their time
        self._speakers: list[Speaker] = []
        self._callbacks: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_scheduled = False
        self.on_left_waiting: Callable[[LeftWaiting], None] | None = None

    def begin(self, limits: TurnLimits, now: float) -> None:
        """The first of its requests is there."""
        self.until = now + limits.seconds
        self.read_size_left = limits.read_size

    def will_end(self) -> None:
        """Something was received: end the turn when all sockets were read, also if nobody has anything to say.

        Said after the handlers, not before: what they left for later with `call_soon` comes first.
        """
        if not self._is_scheduled:
            self._schedule()

    def left_waiting(self, waiting: LeftWaiting) -> None:
        """Somebody begins to have such requests."""
        if self.on_left_waiting is not None:
            self.on_left_waiting(waiting)

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call at the end of every turn, before anything is written; what it raises is a bug and is logged."""
        self._callbacks.append(callback)

    def will_speak(self, speaker: Speaker) -> None:
        """Flush this one when the turn ends; to be said once per turn."""
        self._speakers.append(speaker)
        if not self._is_scheduled:
            self._schedule()

    def enter_ring(self, one: InRing) -> None:
        """Let this one handle what it has, bit by bit; to be said by those who are not in it."""
        self.ring.append(one)
        if not self._is_scheduled:
            self._schedule()

    def _schedule(self) -> None:
        self._is_scheduled = True
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._loop.call_soon(self.end)

    def end(self) -> None:
        """Let those in the ring have what is left of the time; complete and write."""
        if self.taken >= _MANY and not self.looks_again and not self.ring:
            assert self._loop is not None
            self.looks_again = True
            self._loop.call_soon(self.end)
            return
        if self.ring:
            self._go_round()
        for callback in self._callbacks:
            try:
                callback()
            except Exception:
                _logger.exception("a callback of the turn's end failed callback=%r", callback)
        self._is_scheduled = False
        self.looks_again = False
        self.taken = 0
        self.number += 1
        self.until = 0.0
        speakers, self._speakers = self._speakers, []
        for speaker in speakers:
            try:
                speaker.flush()
            except Exception:
                _logger.exception("a connection could not be written speaker=%r", speaker)
        if self.ring and not self._is_scheduled:
            self._schedule()

    def _go_round(self) -> None:
        ring, limits = self.ring, self.limits
        if limits is None:
            while ring:
                self._one_slice(_SLICE)
            return
        now = perf_counter()
        if not self.until:
            self.begin(limits, now)
        until = max(self.until, now + limits.seconds_for_ring)
        self.read_size_left = max(self.read_size_left, limits.read_size_for_ring)
        requests_left = limits.requests
        while ring and requests_left > 0 and self.read_size_left > 0 and perf_counter() < until:
            requests_left -= self._one_slice(min(max(_SLICE // len(ring), _SLICE_AT_LEAST), requests_left))

    def _one_slice(self, most: int) -> int:
        one = self.ring.popleft()
        try:
            handled, stays = one.take_slice(most)
        except Exception:
            _logger.exception("a connection could not go on connection=%r", one)
            return 0
        if stays:
            self.ring.append(one)
        return handled
