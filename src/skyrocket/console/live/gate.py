"""How many streams may be open, and the word for all of them that it is over."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Final

from skyrocket.client.core.errors import ClientError

_MOST_STREAMS: Final = 256


class TooManyStreams(ClientError):
    """More browsers than one console serves."""


class Gate:
    """Counts streams."""

    def __init__(self, most: int = _MOST_STREAMS) -> None:
        self._most = most
        self.open = 0
        self.closing = asyncio.Event()

    def check(self) -> None:
        """Raises TooManyStreams."""
        if self.open >= self._most:
            raise TooManyStreams(
                "{open} pages are already followed live: close some, or reload from time to time", open=self.open
            )

    @contextlib.contextmanager
    def stream(self) -> Iterator[None]:
        """One more while it is entered."""
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1

    async def pause(self, seconds: float) -> bool:
        """Wait; whether the stream goes on."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # not wait_for: in 3.11 it goes on when it is woken and cancelled
                await self.closing.wait()
        return not self.closing.is_set()
