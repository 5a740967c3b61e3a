"""Wrong passwords, counted: whoever guesses has to wait."""

from collections import OrderedDict
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

    def failed(self, address: str) -> None:
        """One more."""
        count, at = self._failed.pop(address, (0, 0.0))
        now = self._clock.monotonic()
        self._failed[address] = (count + 1 if now - at < _PAUSE_SECONDS else 1, now)
        if len(self._failed) > _MOST_ADDRESSES:
            self._failed.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """It was the right one."""
        self._failed.pop(address, None)
