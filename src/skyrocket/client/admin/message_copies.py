"""Messages of a while, sent to another topic: what they carry stays, what belongs to their first life goes."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from datetime import datetime
from heapq import heapify, heappop, heapreplace
from typing import Final

from skyrocket.client.admin.admin_calls import moment_ms
from skyrocket.client.admin.message_admin import MessageAdmin
from skyrocket.client.admin.topic_admin import TopicAdmin
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.send_receipt import SendReceipt
from skyrocket.client.producer.producer import Producer
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.property_names import RESERVED, SHARDING_KEY
from skyrocket.protocol.bodies.subscription import ALL_TAGS

_GROUP: Final = "skyrocket-msg"


def copy_of(message: ReceivedMessage, topic: str) -> Message:
    """A new message with body, tags, keys, sharding key and the application's properties."""
    own = {name: value for name, value in message.properties.items() if name not in RESERVED}
    own.pop(SHARDING_KEY, None)
    return Message(topic, message.body, message.tags, tuple(message.keys), own, message.sharding_key)


def _age(message: ReceivedMessage) -> tuple[int, str, int]:
    """Within a millisecond a broker's log knows what came first."""
    return message.store_timestamp, message.broker_name, message.physical_offset


class CopyAdmin(MessageAdmin, TopicAdmin):
    """Reads what was stored within a while, and copies it."""

    async def count_between(self, topic: str, since: datetime | float, until: datetime | float) -> int:
        """How many messages were stored from one moment to before another, with all tags and keys."""
        spans = [await self._span(queue, moment_ms(since), moment_ms(until)) for queue in await self.queues(topic)]
        return sum(end - begin for begin, end in spans)

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
        spans = {
            queue: await self._span(queue, moment_ms(since), moment_ms(until)) for queue in await self.queues(topic)
        }
        readers = [self._with_key(queue, *span, tags, key) for queue, span in spans.items()]
        try:
            heads = [(number, await anext(reader, None)) for number, reader in enumerate(readers)]
            heap = [(*_age(message), number, message) for number, message in heads if message is not None]
            heapify(heap)
            while heap:
                *_, number, message = heap[0]
                yield message
                following = await anext(readers[number], None)
                if following is None:
                    heappop(heap)
                else:
                    heapreplace(heap, (*_age(following), number, following))
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
        copied = 0
        loop = asyncio.get_running_loop()
        async with Producer(_GROUP, client=self.settings) as producer:
            began = loop.time()
            async for message in self.messages_between(source, since, until, tags=tags, key=key):
                if copied >= most:
                    break
                if rate:
                    await asyncio.sleep(max(began + copied / rate - loop.time(), 0))
                await producer.send(copy_of(message, target))
                copied += 1
                if told is not None:
                    told(copied)
        return copied

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
