"""Our questions to one peer that wait for answers, matched by opaque number."""

import asyncio
from collections.abc import Callable
from itertools import count

from skyrocket.protocol.command import RemotingCommand
from skyrocket.remoting.errors import CallTimeout, RemotingError, TooManyCalls

_MAX_OPAQUE = (1 << 31) - 1
_opaque = count()


def next_opaque() -> int:
    """A number for a request; one series for the process, as RocketMQ has it."""
    return next(_opaque) & _MAX_OPAQUE


class Calls:
    """The calls in flight on one connection."""

    __slots__ = ("_address", "_limit", "_waiting")

    def __init__(self, address: str, limit: int) -> None:
        self._address = address
        self._limit = limit
        self._waiting: dict[int, asyncio.Future[RemotingCommand]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def open(self, command: RemotingCommand) -> asyncio.Future[RemotingCommand]:
        """Give the command its opaque number, and a future for the answer; raises TooManyCalls."""
        if len(self._waiting) >= self._limit:
            raise TooManyCalls(self._address, f"{self._limit} calls wait for answers")
        opaque = next_opaque()
        while opaque in self._waiting:
            opaque = next_opaque()
        command.opaque = opaque
        future: asyncio.Future[RemotingCommand] = asyncio.get_running_loop().create_future()
        self._waiting[opaque] = future
        return future

    async def wait(
        self, command: RemotingCommand, answer: asyncio.Future[RemotingCommand], seconds: float
    ) -> RemotingCommand:
        """The answer; raises CallTimeout, or what ended the connection."""
        timer = asyncio.get_running_loop().call_later(seconds, self._too_late, command, seconds)
        try:
            return await answer
        finally:
            timer.cancel()
            self._waiting.pop(command.opaque, None)

    def forget(self, command: RemotingCommand) -> None:
        """It was not sent."""
        self._waiting.pop(command.opaque, None)

    def answered(self, answer: RemotingCommand) -> None:
        """An answer came; one that nobody waits for is passed over."""
        future = self._waiting.pop(answer.opaque, None)
        if future is not None and not future.done():
            future.set_result(answer)

    def fail_all(self, error: Callable[[], RemotingError]) -> None:
        """No answer will come any more; every caller gets an exception of its own."""
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(error())

    def _too_late(self, command: RemotingCommand, seconds: float) -> None:
        future = self._waiting.pop(command.opaque, None)
        if future is not None and not future.done():
            future.set_exception(
                CallTimeout(self._address, f"request {command.code} had no answer within {seconds * 1000:.0f} ms")
            )
