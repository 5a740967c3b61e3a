"""What is to be told, until somebody has taken it: a bounded queue, and a pause after each failure.

The changes of one look go together, once. While the receiver does not answer they wait in their order; when too many
wait the oldest go, because the newest say how things are now.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from skyrocket.clock import ServiceClock
from skyrocket.model.words import counted
from skyrocket.remoting.errors import plainly

_logger = logging.getLogger(__name__)

MOST_WAITING: Final = 100
TRIES: Final = 8
FIRST_PAUSE_SECONDS: Final = 5.0
_GROWTH: Final = 3  # 5 s, 15 s, 45 s, …: the last try is an hour and a half after the first

T = TypeVar("T")


class Outbox(Generic[T]):
    """Towards one receiver; `run` belongs to the console's services.

    `deliver` blocks, with a time-out of its own, and raises OSError or ValueError; `what` is one of what is told.
    """

    def __init__(
        self, receiver: str, deliver: Callable[[Sequence[T]], None], clock: ServiceClock, what: str = "alert"
    ) -> None:
        self.receiver = receiver
        self._deliver = deliver
        self._what = what
        self._clock = clock
        self._waiting: deque[Sequence[T]] = deque()
        self._is_telling = False
        self._something = asyncio.Event()

    def put(self, news: Sequence[T]) -> None:
        """Tell it soon; never waits."""
        if len(self._waiting) >= MOST_WAITING:
            lost = self._waiting.popleft()
            _logger.warning("%s not told to %s: too many wait for it", self._were(lost), self.receiver)
        self._waiting.append(news)
        self._something.set()

    @property
    def is_idle(self) -> bool:
        """Whether everything was told, or given up."""
        return not self._waiting and not self._is_telling

    async def run(self) -> None:
        """For ever."""
        while True:
            while self._waiting:
                self._is_telling = True
                await self._tell(self._waiting.popleft())
                self._is_telling = False
            self._something.clear()
            await self._something.wait()

    async def _tell(self, news: Sequence[T]) -> None:
        pause_seconds = FIRST_PAUSE_SECONDS
        for tried in range(1, TRIES + 1):
            try:
                await asyncio.to_thread(self._deliver, news)
                return
            except (OSError, ValueError) as error:  # smtplib's errors are OSErrors too
                _logger.warning(
                    "%s not told to %s (try %d of %d): %s",
                    self._were(news),
                    self.receiver,
                    tried,
                    TRIES,
                    plainly(error),
                )
            if tried < TRIES:
                await self._clock.sleep(pause_seconds)
                pause_seconds *= _GROWTH

    def _were(self, news: Sequence[T]) -> str:
        return counted(len(news), f"{self._what} was", f"{self._what}s were")
