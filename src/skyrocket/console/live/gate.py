"""How many streams may be open, and the word for all of them that it is over."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

from skyrocket.client.core.errors import ClientError

_MOST_STREAMS: Final = 256


class TooManyStreams(ClientError):
    """More browsers than one console serves."""


class Gate:
    """Counts streams; one address may have half of all."""

    def __init__(self, most: int = _MOST_STREAMS) -> None:
        self._most = most
        self.open: Counter[str] = Counter()  # by address
        self.closing = asyncio.Event()

    def admit(self, address: str) -> "Admission":
        """Raises TooManyStreams."""
        if self.open.total() >= self._most or self.open[address] >= self._most // 2:
            raise TooManyStreams(
                "{open} pages are already followed live: close some, or reload from time to time",
                open=self.open.total(),
            )
        return Admission(self, address)


class Admission:
    """What one stream may do."""

    def __init__(self, gate: Gate, address: str) -> None:
        self._gate = gate
        self._address = address

    @contextlib.contextmanager
    def stream(self) -> Iterator[None]:
        """Counted while it is entered."""
        opened = self._gate.open
        opened[self._address] += 1
        try:
            yield
        finally:
            opened[self._address] -= 1
            if not opened[self._address]:
                del opened[self._address]

    async def pause(self, seconds: float) -> bool:
        """Wait; whether the stream goes on."""
        closing = self._gate.closing
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # not wait_for: in 3.11 it goes on when it is woken and cancelled
                await closing.wait()
        return not closing.is_set()
