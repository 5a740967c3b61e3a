"""Messages that are sent again: what they carry stays, what belongs to their first life goes."""

import asyncio
from collections.abc import Sequence
from typing import Final

from skyrocket.client import Admin, ClientSettings, Message, Producer, ReceivedMessage, SendReceipt
from skyrocket.model.property_names import RESERVED

_GROUP: Final = "skyrocket-msg"


def copy_of(message: ReceivedMessage, topic: str) -> Message:
    """A new message with body, tags, keys, sharding key and the application's properties."""
    own = {name: value for name, value in message.properties.items() if name not in RESERVED}
    own.pop("__SHARDINGKEY", None)
    return Message(topic, message.body, message.tags, tuple(message.keys), own, message.sharding_key)


async def send_copies(
    settings: ClientSettings, messages: Sequence[ReceivedMessage], topic: str, *, rate: float = 0.0
) -> list[SendReceipt]:
    """One after the other, so that order stays within a queue; `rate` is messages per second, 0 for no limit."""
    receipts = []
    loop = asyncio.get_running_loop()
    async with Producer(_GROUP, client=settings) as producer:
        began = loop.time()
        for number, message in enumerate(messages):
            if rate:
                await asyncio.sleep(max(began + number / rate - loop.time(), 0))
            receipts.append(await producer.send(copy_of(message, topic)))
    return receipts


async def read_range(
    admin: Admin, topic: str, begin_ms: int, end_ms: int, tags: str, key: str | None, limit: int
) -> list[ReceivedMessage]:
    """What was stored from one moment to before another, oldest first."""
    found: list[ReceivedMessage] = []
    for queue in await admin.queues(topic):
        first = await admin.offset_at(queue, begin_ms / 1000)
        async for message in admin.read_queue(queue, max(first, 0), await admin.max_offset(queue), expression=tags):
            if message.store_timestamp >= end_ms or len(found) >= limit:
                break
            if message.store_timestamp >= begin_ms and (key is None or key in message.keys):
                found.append(message)
    return sorted(found, key=lambda message: message.store_timestamp)
