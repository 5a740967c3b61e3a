"""Looks through queues for messages, newest first, with a bound on what is read."""

import asyncio
from dataclasses import dataclass
from typing import Final

from skyrocket.client.admin.admin import Admin
from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.errors import DataError
from skyrocket.filtering.sql92 import Filter, compile_filter
from skyrocket.filtering.sql92_words import SqlError
from skyrocket.model.message_queue import MessageQueue

_STEP: Final = 64
_MOST_READ: Final = 5000
_QUEUES_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """What is not given does not matter."""

    tags: str = ""  # TagA || TagB
    contains: str = ""  # in the body, as text
    property_name: str = ""
    property_value: str = ""  # a part of it
    sql: Filter | None = None  # over properties, as brokers read it

    def takes(self, message: ReceivedMessage) -> bool:
        """Whether it is one of them; tags are the broker's matter."""
        if self.property_name:
            value = message.properties.get(self.property_name)
            if value is None or self.property_value not in value:
                return False
        if self.sql is not None and not self.sql.matches(message.properties):
            return False
        if not self.contains:
            return True
        try:
            return self.contains.encode() in message.body
        except DataError:
            return False


def sql_filter(text: str) -> Filter | None:
    """None for no text; raises WrongUse. It is not left to brokers, whose property filter is often switched off."""
    try:
        return compile_filter(text) if text else None
    except SqlError as error:
        raise WrongUse("the SQL filter cannot be read: {error}", error=error) from error


@dataclass(frozen=True, slots=True)
class Found:
    """What was found, newest first; `is_complete` is false when there may be more."""

    messages: list[ReceivedMessage]
    read: int
    is_complete: bool


async def newest(
    admin: Admin,
    topic: str,
    wanted: MessageFilter,
    *,
    from_ms: int | None,
    to_ms: int | None,
    queue: tuple[str, int] | None,
    offset: int | None = None,
    most: int,
) -> Found:
    """The newest messages of a topic, or of a span of time, of one queue, or of one offset."""
    queues = [each for each in await admin.queues(topic) if queue is None or (each.broker_name, each.queue_id) == queue]
    turn = asyncio.Semaphore(_QUEUES_AT_ONCE)
    budget = _MOST_READ // max(len(queues), 1)

    async def of_queue(each: MessageQueue) -> tuple[list[ReceivedMessage], int, bool]:
        async with turn:
            first, end = await _span(admin, each, from_ms, to_ms)
            if offset is not None:
                first, end = max(first, offset), min(end, offset + 1)
            return await _backwards(admin, each, first, end, wanted, most, budget)

    answers = await asyncio.gather(*(of_queue(each) for each in queues))
    messages = sorted(
        (message for found, _, _ in answers for message in found if to_ms is None or message.store_timestamp <= to_ms),
        key=lambda message: (message.store_timestamp, message.physical_offset),
        reverse=True,
    )
    return Found(
        messages[:most],
        sum(read for _, read, _ in answers),
        is_complete=len(messages) <= most and all(complete for _, _, complete in answers),
    )


async def _span(admin: Admin, queue: MessageQueue, from_ms: int | None, to_ms: int | None) -> tuple[int, int]:
    first, end = await admin.min_offset(queue), await admin.max_offset(queue)
    if from_ms is not None:
        first = max(first, await admin.offset_at(queue, from_ms / 1000))
    if to_ms is not None:
        # Brokers name the message before or behind the moment: one too many is left out afterwards.
        end = min(end, await admin.offset_at(queue, to_ms / 1000) + 1)
    return max(first, 0), end


async def _backwards(
    admin: Admin, queue: MessageQueue, first: int, end: int, wanted: MessageFilter, most: int, budget: int
) -> tuple[list[ReceivedMessage], int, bool]:
    found: list[ReceivedMessage] = []
    read = 0
    expression = wanted.tags or "*"
    while end > first and len(found) < most and read < budget:
        begin = max(first, end - max(_STEP, most))
        chunk = [
            message
            async for message in admin.read_queue(queue, begin, end, expression=expression)
            if wanted.takes(message)
        ]
        found += reversed(chunk)
        read += end - begin
        end = begin
    return found, read, end <= first
