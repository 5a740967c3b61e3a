"""Messages that a group will get once more: those that are due already, and those that wait for their time.

%RETRY%billing, %RETRY%billing_Orders    due: what lies behind the group's offset
SCHEDULE_TOPIC_XXXX, queue = level - 1   waiting: stored there less long ago than the level's delay
the timer wheel                          waiting for a time of its own; only Skyrocket's brokers list it
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from skyrocket.client.admin.admin import Admin
from skyrocket.client.core.errors import NoRoute, NotOffered
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.names import retry_topic, unwrap, wrap
from skyrocket.model import property_names as names
from skyrocket.model.delay_level import DEFAULT_DELAY_LEVELS, parse_delay_levels
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.pop_retry import is_ambiguous, pop_retry_topic
from skyrocket.model.topic import SCHEDULE_TOPIC

_MOST_READ: Final = 2000  # of one queue: others' messages lie between those of the group
_QUEUES_AT_ONCE: Final = 8
_LEVELS_SETTING: Final = "messageDelayLevel"


@dataclass(frozen=True, slots=True)
class Retry:
    """One message that comes again."""

    message_id: str
    topic: str  # where it came from
    retry_topic: str
    broker: str
    due_ms: int
    attempts: int | None  # deliveries that failed; None: a timer does not tell
    keys: list[str]
    tags: str | None
    message: ReceivedMessage | None  # None: a timer lists no bodies


@dataclass(frozen=True, slots=True)
class Retries:
    """Soonest first; `is_complete` is false when there may be more."""

    rows: list[Retry]
    is_complete: bool


def retry_topics(group: str, topics: Collection[str], groups: Collection[str], known: Collection[str]) -> list[str]:
    """The retry topics of a group that there are: its own, and one for each topic that it pops."""
    names_of = {retry_topic(group)}
    for topic in topics:
        names_of.add(pop_retry_topic(group, topic, v2=True))
        if not is_ambiguous(group, topic, groups.__contains__):
            names_of.add(pop_retry_topic(group, topic))
    return sorted(names_of.intersection(known))


class RetryReader:
    """Reads with a bound for each queue."""

    def __init__(self, admin: Admin, namespace: str, now_ms: int) -> None:
        self._admin = admin
        self._namespace = namespace
        self._now_ms = now_ms
        self._turn = asyncio.Semaphore(_QUEUES_AT_ONCE)

    async def due(self, group: str, topics: Collection[str]) -> Retries:
        """What the group could take now."""
        queues = [queue for topic in topics for queue in await self._admin.queues(topic)]
        return _together(await asyncio.gather(*(self._due_of(group, queue) for queue in queues)))

    async def _due_of(self, group: str, queue: MessageQueue) -> Retries:
        async with self._turn:
            first, end = await self._admin.min_offset(queue), await self._admin.max_offset(queue)
            begin = max(await self._admin.committed(group, queue) or 0, first, 0)
            upto = min(end, begin + _MOST_READ)
            rows = [
                self._row(message, message.store_timestamp, queue.topic)
                async for message in self._admin.read_queue(queue, begin, upto)
            ]
            return Retries(rows, upto >= end)

    async def waiting(self, topics: Collection[str]) -> Retries:
        """What the delay levels hold back."""
        try:
            held = await self._admin.topic_offsets(SCHEDULE_TOPIC)
        except NoRoute:  # these brokers have never delayed anything
            return Retries([], is_complete=True)
        places = await self._admin.broker_settings(with_slaves=False)
        levels = {place.broker_name: _delays(settings) for place, settings in places.items()}
        wanted = {wrap(self._namespace, topic) for topic in topics}
        asked = [
            self._waiting_in(queue, delays[queue.queue_id], wanted)
            for queue, offset in held.items()
            if queue.queue_id < len(delays := levels.get(queue.broker_name, ()))
            and offset.last_update_timestamp + delays[queue.queue_id] > self._now_ms
        ]
        return _together(await asyncio.gather(*asked))

    async def _waiting_in(self, queue: MessageQueue, delay_ms: int, wanted: Collection[str]) -> Retries:
        """Each entry of a level waits equally long, so those that are not due begin at one moment."""
        async with self._turn:
            begin = max(await self._admin.offset_at(queue, (self._now_ms - delay_ms) / 1000), 0)
            end = await self._admin.max_offset(queue)
            upto = min(end, begin + _MOST_READ)
            rows = []
            async for message in self._admin.read_queue(queue, begin, upto):
                target, due_ms = message.properties.get(names.REAL_TOPIC, ""), message.store_timestamp + delay_ms
                if target in wanted and due_ms > self._now_ms:
                    rows.append(self._row(message, due_ms, unwrap(self._namespace, target)))
            return Retries(rows, upto >= end)

    async def timers(self, topics: Collection[str], most: int) -> Retries:
        """What waits for a time of its own."""
        rows: list[Retry] = []
        is_complete = True
        for topic in topics:
            try:
                found = await self._admin.pending_timers(topic, most=most)
            except NotOffered:  # Apache's tell numbers alone
                return Retries(rows, is_complete=False)
            is_complete = is_complete and len(found) < most
            rows += [
                Retry(each.message_id, "", topic, each.broker_name, each.due_ms, None, list(each.keys), None, None)
                for each in found
            ]
        return Retries(rows, is_complete)

    def _row(self, message: ReceivedMessage, due_ms: int, topic: str) -> Retry:
        origin = unwrap(self._namespace, message.properties.get(names.RETRY_TOPIC, message.topic))
        return Retry(
            message.message_id,
            origin,
            topic,
            message.broker_name,
            due_ms,
            message.reconsume_times,
            message.keys,
            message.tags,
            message,
        )


def _delays(settings: Mapping[str, str]) -> tuple[int, ...]:
    return parse_delay_levels(settings.get(_LEVELS_SETTING) or DEFAULT_DELAY_LEVELS)


def _together(parts: Collection[Retries]) -> Retries:
    rows = sorted((row for part in parts for row in part.rows), key=lambda row: row.due_ms)
    return Retries(rows, all(part.is_complete for part in parts))
