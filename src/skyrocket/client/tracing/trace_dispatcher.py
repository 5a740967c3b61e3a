"""Brings trace events to the trace topic, behind the application's back.

calls and sends ─▶ at most 2048 wait, the rest is dropped and counted ─▶ every second, or when ten wait: messages

Nobody waits for it and nobody hears of its failures but the log. It sends over the connections of the client that it
belongs to, as a producer with a group of its own.
"""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.members import TransactionCheck
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.names import wrap
from skyrocket.client.core.routes import Route
from skyrocket.client.sending.message_encoding import EncodingRules, encoded
from skyrocket.client.sending.retrying_sender import RetryingSender, SendRules
from skyrocket.errors import SkyrocketError
from skyrocket.format.trace import TraceEvent, encode_event
from skyrocket.remoting.tasks import TaskSet

_logger = logging.getLogger(__name__)

MAX_WAITING: Final = 2048
_SOON: Final = 10
_PERIOD_SECONDS: Final = 1.0
_SEND_SECONDS: Final = 5.0
_CLOSE_SECONDS: Final = 5.0
MAX_BODY: Final = 128_000
MAX_KEYS: Final = 16_000  # properties have 32767 bytes
_RULES: Final = EncodingRules(max_message_size=4 << 20)

_numbers = itertools.count(1)


def packed(
    events: Iterable[TraceEvent], max_body: int = MAX_BODY, max_keys: int = MAX_KEYS
) -> Iterator[tuple[bytes, list[str], int]]:
    """Bodies with the keys that they are found by, and how many events each has."""
    texts: list[str] = []
    keys: dict[str, None] = {}
    size = keys_size = 0
    for event in events:
        text = encode_event(event)
        own = [event.message_id, *(getattr(event, "keys", None) or "").split()]
        own_size = sum(len(key.encode()) + 1 for key in own)
        if texts and (size + len(text) > max_body or keys_size + own_size > max_keys):
            yield "".join(texts).encode("utf-8", "replace"), list(keys), len(texts)
            texts, keys, size, keys_size = [], {}, 0, 0
        texts.append(text)
        if own_size > max_keys:
            own = own[:1]  # a message with more keys than that is found by its id
        keys.update(dict.fromkeys(own))
        size += len(text)
        keys_size += own_size
    if texts:
        yield "".join(texts).encode("utf-8", "replace"), list(keys), len(texts)


class TraceDispatcher:
    """The traces of one producer or consumer."""

    def __init__(self, instance: ClientInstance, topic: str, group: str, role: str) -> None:
        self.group = f"_INNER_TRACE_PRODUCER-{group}-{role}-{next(_numbers)}"
        self.topic = topic
        self.sent = 0  # events
        self.dropped = 0
        self._instance = instance
        self._stored_topic = wrap(instance.namespace, topic)
        self._sender = RetryingSender(instance, self.group, SendRules())
        self._waiting: deque[tuple[TraceEvent, ...]] = deque()
        self._wake = asyncio.Event()
        self._is_closing = False
        self._tasks = TaskSet()

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Begin to send what is appended."""
        self._instance.join_producer(self)
        self._tasks.start(self._run(), f"trace {self.group}")

    async def close(self) -> None:
        """Send what waits, for a few seconds; the rest is dropped."""
        self._is_closing = True
        self._wake.set()
        await self._tasks.drain(_CLOSE_SECONDS)
        self._lose(sum(map(len, self._waiting)), "the client stops")
        self._waiting.clear()
        await self._instance.leave_producer(self.group)

    # ── events ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def append(self, events: tuple[TraceEvent, ...]) -> None:
        """Let the events of one send or call be told; never waits."""
        if not events:
            return
        if self._is_closing or len(self._waiting) >= MAX_WAITING:
            self._lose(len(events), "too many wait already")
            return
        self._waiting.append(events)
        if len(self._waiting) >= _SOON:
            self._wake.set()

    async def _run(self) -> None:
        while not self._is_closing:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PERIOD_SECONDS):  # not wait_for: 3.11's loses cancellations
                    await self._wake.wait()
            self._wake.clear()
            await self._flush()
        await self._flush()  # what came while the last one was under way

    async def _flush(self) -> None:
        while self._waiting:
            taken = list(itertools.chain.from_iterable(self._waiting))
            self._waiting.clear()
            left = len(taken)
            try:
                for body, keys, count in packed(taken):
                    await self._send(Message(self._stored_topic, body, keys=keys), count)
                    left -= count
            finally:
                self._lose(left, "the client stops")

    async def _send(self, message: Message, count: int) -> None:
        try:
            out = encoded(message, self._stored_topic, _RULES, self._instance.clock.now_ms())
            await self._sender.send(out, _SEND_SECONDS)
        except SkyrocketError as error:
            self._lose(count, error)
        except Exception as error:
            _logger.exception("traces could not be sent group=%s", self.group)
            self._lose(count, error)
        else:
            self.sent += count

    def _lose(self, count: int, why: object) -> None:
        if not count:
            return
        # A line when the number gets another digit: losses come in crowds.
        if len(str(self.dropped + count)) > len(str(self.dropped)) or not self.dropped:
            _logger.warning(
                "traces are dropped group=%s topic=%s count=%d reason=%s",
                self.group,
                self.topic,
                self.dropped + count,
                why,
            )
        self.dropped += count

    # ── what the client asks of its members ──────────────────────────────────────────────────────────────────────────

    @property
    def topics(self) -> list[str]:
        return list(self._sender.topics)

    def forked(self) -> None:
        self._is_closing = True  # the child has neither the task nor the sockets

    def route_changed(self, topic: str, route: Route) -> None:
        self._sender.route_changed(topic, route)

    async def check_transaction(self, message: ReceivedMessage, question: TransactionCheck) -> None:
        """Traces are never half messages: a broker that asks is mistaken, and asks another one."""
        _logger.warning("a transaction check for traces group=%s", self.group)
