"""Messages of a while, sent to another topic: what they carry stays, what belongs to their first life goes."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from skyrocket.client.admin.admin_calls import moment_ms
from skyrocket.client.admin.message_admin import MessageAdmin
from skyrocket.client.admin.oldest_first import begun, oldest_first
from skyrocket.client.admin.topic_admin import TopicAdmin
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.send_receipt import SendReceipt
from skyrocket.client.producer.producer import Producer
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.property_names import RESERVED, SHARDING_KEY
from skyrocket.protocol.bodies.subscription import ALL_TAGS

_GROUP: Final = "skyrocket-msg"

Spans = Mapping[MessageQueue, tuple[int, int]]  # by queue: the first offset, and the one behind the last


@dataclass(slots=True)
class CopyProgress:
    """How far a copy is: it moves behind each message whose copy is confirmed."""

    left: dict[MessageQueue, tuple[int, int]]  # as Spans
    copied: int = 0
    last: ReceivedMessage | None = None  # that was copied
    at: Callable[[], object] | None = None  # called after each message

    def passed(self, message: ReceivedMessage) -> None:
        """Its copy is confirmed."""
        topic = next(iter(self.left)).topic  # of a dead letter the message names another
        queue = MessageQueue(topic, message.broker_name, message.queue_id)
        self.left[queue] = message.queue_offset + 1, self.left[queue][1]
        self.copied += 1
        self.last = message
        if self.at is not None:
            self.at()


def copy_of(message: ReceivedMessage, topic: str) -> Message:
    """A new message with body, tags, keys, sharding key and the application's properties."""
    own = {name: value for name, value in message.properties.items() if name not in RESERVED}
    own.pop(SHARDING_KEY, None)
    return Message(topic, message.body, message.tags, tuple(message.keys), own, message.sharding_key)


class CopyAdmin(MessageAdmin, TopicAdmin):
    """Reads what was stored within a while, and copies it."""

    async def count_between(self, topic: str, since: datetime | float, until: datetime | float) -> int:
        """How many messages were stored from one moment to before another, with all tags and keys."""
        return sum(end - begin for begin, end in (await self.spans_between(topic, since, until)).values())

    async def spans_between(
        self, topic: str, since: datetime | float, until: datetime | float
    ) -> dict[MessageQueue, tuple[int, int]]:
        """Where they lie: the first offset of each queue, and the one behind the last."""
        return {
            queue: await self._span(queue, moment_ms(since), moment_ms(until)) for queue in await self.queues(topic)
        }

    async def messages_between(
        self,
        topic: str,
        since: datetime | float,
        until: datetime | float,
        *,
        tags: str = ALL_TAGS,
        key: str | None = None,
    ) -> AsyncIterator[ReceivedMessage]:
        """What was stored from one moment to before another, oldest first; nothing that comes meanwhile.

        A batch of each queue is held, however many messages there are.
        """
        async for message in self.messages_of(await self.spans_between(topic, since, until), tags=tags, key=key):
            yield message

    async def messages_of(
        self, spans: Spans, *, tags: str = ALL_TAGS, key: str | None = None
    ) -> AsyncIterator[ReceivedMessage]:
        """What lies there, oldest first."""
        readers = [self._with_key(queue, *span, tags, key) for queue, span in spans.items()]
        try:
            async for message in oldest_first(await begun(readers)):
                yield message
        finally:
            for reader in readers:
                await reader.aclose()

    async def send_again(self, message: ReceivedMessage, topic: str) -> SendReceipt:
        """Send a copy of a message to a topic, as a new one."""
        async with Producer(_GROUP, client=self.settings) as producer:
            return await producer.send(copy_of(message, topic))

    async def copy_messages(
        self,
        source: str,
        target: str,
        since: datetime | float,
        until: datetime | float,
        *,
        tags: str = ALL_TAGS,
        key: str | None = None,
        most: int = 100_000,
        rate: float = 0.0,
        told: Callable[[int], object] | None = None,
    ) -> int:
        """Send the messages of a while to another topic, or to the same one again; how many they were.

        One after the other, so that order stays within a sharding key; `rate` is messages per second, 0 for no limit.
        `told` hears how many were copied so far, also of a copy that fails or is cancelled then.
        """
        progress = CopyProgress(await self.spans_between(source, since, until))
        if told is not None:
            hear = told
            progress.at = lambda: hear(progress.copied)
        await self.go_on_copying(progress, target, tags=tags, key=key, most=most, rate=rate)
        return progress.copied

    async def go_on_copying(
        self,
        progress: CopyProgress,
        target: str,
        *,
        tags: str = ALL_TAGS,
        key: str | None = None,
        most: int = 100_000,
        rate: float = 0.0,
    ) -> None:
        """Copy what is left, until `most` were copied in all, those before among them.

        `progress` says where it stands, also when this fails or is cancelled: what it has not passed is not lost. The
        one message that was on its way then may have been stored, and is copied a second time by who goes on.
        """
        loop, before = asyncio.get_running_loop(), progress.copied
        async with Producer(_GROUP, client=self.settings) as producer:
            began = loop.time()
            async for message in self.messages_of(dict(progress.left), tags=tags, key=key):
                if progress.copied >= most:
                    break
                if rate:
                    await asyncio.sleep(max(began + (progress.copied - before) / rate - loop.time(), 0))
                await producer.send(copy_of(message, target))
                progress.passed(message)

    async def _with_key(
        self, queue: MessageQueue, begin: int, end: int, tags: str, key: str | None
    ) -> AsyncGenerator[ReceivedMessage, None]:
        async for message in self.read_queue(queue, begin, end, expression=tags):
            if key is None or key in message.keys:
                yield message

    async def _span(self, queue: MessageQueue, since_ms: int, until_ms: int) -> tuple[int, int]:
        """The offsets of a while: the first, and the one behind the last."""
        end = await self.max_offset(queue)
        begin = await self._first_since(queue, since_ms, end)
        return begin, max(begin, await self._first_since(queue, until_ms, end))

    async def _first_since(self, queue: MessageQueue, at_ms: int, end: int) -> int:
        # RocketMQ: 4.x names the nearest message, which may be the one before the moment.
        near = max(await self.offset_at(queue, at_ms / 1000), 0)
        async for message in self.read_queue(queue, near, end, batch=1):
            if message.store_timestamp >= at_ms:
                return message.queue_offset
        return end
