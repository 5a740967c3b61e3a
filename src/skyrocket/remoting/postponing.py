"""A request that is not refused but begun later: a check says how long, and the router keeps its place."""

from collections.abc import Awaitable, Callable

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import RequestError
from skyrocket.remoting.answers import LaterAnswer


class Postponed(Exception):
    """Raised by a check: begin the request after a pause. What a second check postpones again hears `otherwise`."""

    def __init__(self, pause: Callable[[], Awaitable[None]], otherwise: RequestError) -> None:
        self.pause = pause
        self.otherwise = otherwise
        super().__init__(str(otherwise))


class PostponedAnswer(LaterAnswer):
    """The answer to such a request; in the end that of the handler, which may be one that comes later, too."""

    __slots__ = ("_inner",)

    def __init__(self, request: RemotingCommand) -> None:
        super().__init__(request)
        self._inner: LaterAnswer | None = None

    def follow(self, inner: LaterAnswer) -> None:
        """Be filled with what the other is filled with."""
        if inner.is_open:
            self._inner = inner
            inner.wait_in(self)
        else:
            self.fill(inner.frame)

    def arrived(self, later: LaterAnswer) -> None:
        """The other answer is there."""
        self._inner = None
        self.fill(later.frame)

    def abandon(self) -> None:
        """Nobody waits any more: not for the other one either, or a pop would take messages for nobody."""
        super().abandon()
        if self._inner is not None:
            self._inner.abandon()
