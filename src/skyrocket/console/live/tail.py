"""A topic as it is written to, pushed message by message; no faster than a person can look."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Final

from skyrocket.client.admin.admin import Admin
from skyrocket.client.core.errors import NotFound
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.console.cluster.decoding import Decoder
from skyrocket.console.cluster.message_search import MessageFilter, sql_filter
from skyrocket.console.live.events import KEEP_ALIVE, event
from skyrocket.console.live.gate import Admission
from skyrocket.console.telling.told_error import told
from skyrocket.errors import SkyrocketError
from skyrocket.model.message_queue import MessageQueue

_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 2.0
_MOST_A_ROUND: Final = 2000  # read from brokers; what is more is passed over, and said


@dataclass(frozen=True, slots=True)
class TailWanted:
    """A filter, and how many messages a second are shown at most."""

    tags: str = ""
    contains: str = ""
    property_name: str = ""
    property_value: str = ""
    sql: str = ""  # SQL92 over properties
    per_second: int = 50


async def tail(
    admin: Admin, topic: str, wanted: TailWanted, admission: Admission, decoder: Decoder, check: Callable[[], None]
) -> AsyncGenerator[bytes, None]:
    """From now on: `message` events, `skipped` with a number, `trouble` with its cause, `begun` when it is over.

    `check` raises when whoever asked may not look any more.
    """
    pause = _PAUSE_SECONDS
    with admission.stream():
        try:
            chosen = MessageFilter(
                wanted.tags, wanted.contains, wanted.property_name, wanted.property_value, sql_filter(wanted.sql)
            )
            offsets = {queue: await admin.max_offset(queue) for queue in await admin.queues(topic)}
            if not offsets:
                raise NotFound("no queue of topic {topic} can be read: its permission does not allow it", topic=topic)
        except SkyrocketError as error:
            yield event("trouble", told(error))
            return
        begun = event("begun", {"queues": len(offsets)})
        yield begun
        is_troubled = False
        while await admission.pause(pause):
            try:
                check()
                found, passed = await _round(admin, offsets, chosen)
            except SkyrocketError as error:
                yield event("trouble", told(error))
                pause, is_troubled = _LONGEST_PAUSE_SECONDS, True
                continue
            if is_troubled:
                yield begun
                is_troubled = False
            most = max(1, round(max(wanted.per_second, 1) * pause))
            passed += max(len(found) - most, 0)
            for row in await decoder.rows(found[-most:]):
                yield event("message", row)
            if passed:
                yield event("skipped", {"messages": passed})
            if not found:
                yield KEEP_ALIVE
            pause = _PAUSE_SECONDS if found else min(pause * 1.25, _LONGEST_PAUSE_SECONDS)


async def _round(
    admin: Admin, offsets: dict[MessageQueue, int], chosen: MessageFilter
) -> tuple[list[ReceivedMessage], int]:
    """What is new in all queues, and how many messages were passed over."""
    ends = dict(zip(offsets, await asyncio.gather(*(admin.max_offset(queue) for queue in offsets)), strict=True))
    share = max(_MOST_A_ROUND // len(offsets), 1)
    found: list[ReceivedMessage] = []
    passed = 0
    for queue, end in ends.items():
        begin = max(offsets[queue], end - share)
        passed += begin - offsets[queue]
        if end > begin:
            reading = admin.read_queue(queue, begin, end, expression=chosen.tags or "*")
            found += [message async for message in reading if chosen.takes(message)]
        offsets[queue] = max(end, offsets[queue])
    return sorted(found, key=lambda message: message.store_timestamp), passed
