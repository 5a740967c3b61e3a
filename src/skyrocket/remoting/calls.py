"""Our questions to one peer that wait for answers, matched by opaque number.

One timer serves all of them: it goes off when the earliest deadline is there, looks for those that are over, and is set
to the next. Under load most calls are answered long before, so a call costs no timer of its own. Looks are at least
`_GRANULARITY_SECONDS` apart: a call may be told that much too late that its time is up.
"""

import asyncio
from collections.abc import Callable
from itertools import count
from time import monotonic  # real time, whatever clock the program was given: the peer has no other
from typing import Final

from skyrocket.protocol.command import RemotingCommand
from skyrocket.remoting.errors import CallTimeout, RemotingError, TooManyCalls

_MAX_OPAQUE = (1 << 31) - 1
_GRANULARITY_SECONDS: Final = 0.02
_NEVER: Final = float("inf")
_opaque = count()


def next_opaque() -> int:
    """A number for a request; one series for the process, as RocketMQ has it."""
    return next(_opaque) & _MAX_OPAQUE


class Calls:
    """The calls in flight on one connection."""

    __slots__ = ("_address", "_limit", "_look_at", "_loop", "_timer", "_waiting")

    def __init__(self, address: str, limit: int) -> None:
        self._address = address
        self._limit = limit
        # The answer, until when it is awaited, how long that was, and the request's code.
        self._waiting: dict[int, tuple[asyncio.Future[RemotingCommand], float, float, int]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._look_at = _NEVER

    def __len__(self) -> int:
        return len(self._waiting)

    def number(self) -> int:
        """An opaque number for a call; raises TooManyCalls."""
        waiting = self._waiting
        if len(waiting) >= self._limit:
            raise TooManyCalls(self._address, f"{self._limit} calls wait for answers")
        opaque = next(_opaque) & _MAX_OPAQUE
        while opaque in waiting:
            opaque = next_opaque()
        return opaque

    def expect(self, opaque: int, code: int, seconds: float) -> "asyncio.Future[RemotingCommand]":
        """The answer to come: a future that ends in a CallTimeout, or in what ended the connection."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        future: asyncio.Future[RemotingCommand] = loop.create_future()
        deadline = monotonic() + seconds
        self._waiting[opaque] = (future, deadline, seconds, code)
        if deadline < self._look_at:
            self._look_again_at(deadline, seconds)
        return future

    def forget(self, opaque: int) -> None:
        """Nobody waits for this one any more."""
        self._waiting.pop(opaque, None)

    def answered(self, answer: RemotingCommand) -> None:
        """An answer came; one that nobody waits for is passed over."""
        call = self._waiting.pop(answer.opaque, None)
        if call is not None and not call[0].done():
            call[0].set_result(answer)

    def fail_all(self, error: Callable[[], RemotingError]) -> None:
        """No answer will come any more; every caller gets an exception of its own."""
        waiting, self._waiting = self._waiting, {}
        self._stop_looking()
        for future, *_ in waiting.values():
            if not future.done():
                future.set_exception(error())

    def _look_again_at(self, moment: float, seconds: float) -> None:
        self._stop_looking()
        assert self._loop is not None
        self._look_at = moment
        self._timer = self._loop.call_later(max(seconds, 0.0), self._look)

    def _stop_looking(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._look_at = None, _NEVER

    def _look(self) -> None:
        """End the calls whose time is up."""
        self._timer, self._look_at = None, _NEVER
        now = monotonic()
        earliest = _NEVER
        over: list[int] = []
        for opaque, (future, deadline, _, _) in self._waiting.items():
            if deadline <= now or future.done():
                over.append(opaque)
            elif deadline < earliest:
                earliest = deadline
        for opaque in over:
            future, _, seconds, code = self._waiting.pop(opaque)
            if not future.done():
                what = f"request {code} had no answer within {seconds * 1000:.0f} ms"
                future.set_exception(CallTimeout(self._address, what))
        if earliest < _NEVER and earliest < self._look_at:
            self._look_again_at(earliest, max(earliest - now, _GRANULARITY_SECONDS))
