"""Wrong passwords, counted: whoever guesses has to wait."""

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from skyrocket.client.core.errors import ClientError
from skyrocket.clock import Clock

_FREE: Final = 5
_PAUSE_SECONDS: Final = 60.0
_MOST_ADDRESSES: Final = 10_000


class TooManyAttempts(ClientError):
    """Too many wrong ones from one address."""


class Attempts:
    """By address; those that failed last are remembered."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def check(self, address: str) -> None:
        """Raises TooManyAttempts."""
        count, at = self._failed.get(address, (0, 0.0))
        if count >= _FREE and self._clock.monotonic() - at < _PAUSE_SECONDS:
            raise TooManyAttempts(
                "{count} logins from {address} were wrong: wait a minute", count=count, address=address
            )

    @contextlib.contextmanager
    def one(self, address: str, wrong: type[Exception]) -> Iterator[None]:
        """One attempt; raises TooManyAttempts.

        It counts as wrong while brokers are asked: many at once are as many as one after the other.
        """
        self.check(address)
        self.failed(address)
        try:
            yield
        except wrong:
            raise
        except BaseException:  # nobody has said that it was wrong
            self._take_back(address)
            raise
        self._failed.pop(address, None)

    def failed(self, address: str) -> None:
        """One more."""
        count, at = self._failed.pop(address, (0, 0.0))
        now = self._clock.monotonic()
        self._failed[address] = (count + 1 if now - at < _PAUSE_SECONDS else 1, now)
        if len(self._failed) > _MOST_ADDRESSES:
            self._failed.popitem(last=False)

    def _take_back(self, address: str) -> None:
        count, at = self._failed.get(address, (0, 0.0))
        if count > 1:
            self._failed[address] = (count - 1, at)
        else:
            self._failed.pop(address, None)
