"""Bodies read by the schemas of their topics, in threads of their own: a registry may keep them waiting."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final, TypeVar

import orjson

from skyrocket.client.core.message import ReceivedMessage
from skyrocket.clock import Clock
from skyrocket.console.cluster.message_rows import MessageRow, preview_of, row_of, shortened
from skyrocket.errors import DataError, SkyrocketError
from skyrocket.schemas.catalog import Catalog, Decoded

T = TypeVar("T")

_THREADS: Final = 2
_MOST_WAITING: Final = 64
_PATIENCE_SECONDS: Final = 15.0  # longer than a registry is waited for
_MOST_PREVIEW_BYTES: Final = 64 * 1024
_PREVIEWS_SECONDS: Final = 1.0  # of a list's work; what is left then is shown as it is


class Undecided(SkyrocketError):
    """It is not known in time what bodies say."""


class Decoder:
    """Decodes for pages; without schemas it costs nothing."""

    def __init__(self, catalog: Catalog, clock: Clock) -> None:
        self._catalog = catalog
        self._clock = clock
        self._threads = ThreadPoolExecutor(_THREADS, "console-schemas")
        self._waiting = 0

    async def decoded(self, message: ReceivedMessage) -> Decoded | None:
        """What the body says, or why that is not known; None where no schema is known."""
        if not self._catalog:
            return None
        try:
            return await self._in_thread(lambda: self._catalog.decoded(message.topic, message.body))
        except (DataError, Undecided) as error:
            return Decoded("", "", None, str(error))

    async def rows(self, messages: Sequence[ReceivedMessage]) -> list[MessageRow]:
        """Lines of a list, whose previews are decoded."""
        texts = await self.previews(messages)
        return [replace(row_of(message), preview=text) for message, text in zip(messages, texts, strict=True)]

    async def previews(self, messages: Sequence[ReceivedMessage]) -> list[str]:
        """The beginnings of bodies, as JSON where a schema is known and fits."""
        plain = [preview_of(message) for message in messages]
        if not self._catalog or not messages:
            return plain
        try:
            return await self._in_thread(lambda: self._previews(messages, plain))
        except Undecided:
            return plain

    def _previews(self, messages: Sequence[ReceivedMessage], plain: Sequence[str]) -> list[str]:
        deadline = self._clock.monotonic() + _PREVIEWS_SECONDS
        return [
            self._preview(message, text) if self._clock.monotonic() < deadline else text
            for message, text in zip(messages, plain, strict=True)
        ]

    def _preview(self, message: ReceivedMessage, plain: str) -> str:
        try:
            body = message.body
        except DataError:
            return plain
        if len(body) > _MOST_PREVIEW_BYTES:
            return plain
        found = self._catalog.decoded(message.topic, body)
        return plain if found is None or found.trouble else shortened(orjson.dumps(found.value).decode())

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._waiting >= _MOST_WAITING:
            raise Undecided("too many bodies are being decoded: try again in a moment")
        self._waiting += 1
        try:
            running = asyncio.get_running_loop().run_in_executor(self._threads, work)
            return await asyncio.wait_for(running, _PATIENCE_SECONDS)
        except TimeoutError:
            raise Undecided(f"the body was not decoded within {_PATIENCE_SECONDS:.0f} s: try again") from None
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Threads end with what they do."""
        self._threads.shutdown(wait=False, cancel_futures=True)
