"""Reads a topic: anonymously, from any place and without a trace; or as a member of a group, from where that is.

Without `follow` it ends where the queues ended when it began.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from skyrocket.cli.program.moments import EARLIEST, LATEST, Start, StartKind
from skyrocket.client import (
    Admin,
    ClientSettings,
    ConsumeFromWhere,
    LitePullConsumer,
    LitePullSettings,
    MessageQueue,
    ReceivedMessage,
)
from skyrocket.client.consumer.subscription import Filter
from skyrocket.client.core.names import check_topic
from skyrocket.clock import Clock
from skyrocket.errors import ConfigError, SkyrocketError

# RocketMQ: the group of its tools. Every broker has it, so a reader need not be made known first.
ANONYMOUS_GROUP: Final = "TOOLS_CONSUMER"

_POLL_SECONDS: Final = 0.2
_STALLED_SECONDS: Final = 30.0
_WITHOUT_QUEUES_SECONDS: Final = 15.0
_SETTLED_SECONDS: Final = 1.0
_BATCH: Final = 256


@dataclass(frozen=True, slots=True)
class Tail:
    """What to read."""

    topic: str
    wanted: Filter = "*"
    start: Start | None = None
    group: str | None = None
    commits: bool = True
    limit: int = 0  # 0: all
    follow: bool = False
    queue_ids: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        check_topic(self.topic)
        if self.group is None or self.start is None:
            return
        if self.start.kind in (StartKind.OFFSET, StartKind.LAST):
            raise ConfigError(
                "--from with an offset is for readers without --group: a group goes on where it is; "
                "earliest, latest or a time say where a new one begins"
            )

    @property
    def begin(self) -> Start:
        return self.start or (LATEST if self.follow else EARLIEST)


async def read(
    tail: Tail, settings: ClientSettings, clock: Clock, show: Callable[[Sequence[ReceivedMessage]], None]
) -> int:
    """Until the end, the limit or a cancellation; returns how many were shown."""
    pulling = _pull_settings(tail)
    group = tail.group or ANONYMOUS_GROUP
    async with Admin(client=settings) as admin, LitePullConsumer(group, settings=pulling, client=settings) as consumer:
        reader = _Reader(tail, admin, consumer, clock, show)
        if tail.group is None:
            await reader.assign()
        else:
            await admin.route(tail.topic)  # raises NoRoute: a group would wait for the topic to appear
            await consumer.subscribe(tail.topic, tail.wanted)
        return await reader.run()


def _pull_settings(tail: Tail) -> LitePullSettings:
    kind = tail.begin.kind
    moment = None
    where = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    if kind is StartKind.LATEST:
        where = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    elif kind is StartKind.TIME:
        where = ConsumeFromWhere.CONSUME_FROM_TIMESTAMP
        moment = datetime.fromtimestamp(tail.begin.value / 1000, UTC)
    return LitePullSettings(
        consume_from=where,
        consume_timestamp=moment,
        new_group_from_zero=False,
        auto_commit=tail.group is not None and tail.commits,
        auto_commit_interval=1.0,
        pull_batch_size=_BATCH,
    )


class _Reader:
    def __init__(
        self,
        tail: Tail,
        admin: Admin,
        consumer: LitePullConsumer,
        clock: Clock,
        show: Callable[[Sequence[ReceivedMessage]], None],
    ) -> None:
        self._tail = tail
        self._admin = admin
        self._consumer = consumer
        self._clock = clock
        self._show = show
        self._ends: dict[MessageQueue, int] = {}
        self._seen: set[MessageQueue] = set()
        self._changed_at = clock.monotonic()

    async def assign(self) -> None:
        """All queues, or those that were asked for, each from its place."""
        tail, ids = self._tail, self._tail.queue_ids
        queues = [queue for queue in await self._admin.queues(tail.topic) if not ids or queue.queue_id in ids]
        if not queues:
            raise ConfigError(f"topic {tail.topic} has no queue {', '.join(map(str, sorted(ids)))} that can be read")
        starts = dict(zip(queues, await asyncio.gather(*map(self._start, queues)), strict=True))
        await self._consumer.assign(starts, tail.wanted)

    async def _start(self, queue: MessageQueue) -> int:
        start, admin = self._tail.begin, self._admin
        first, end = await asyncio.gather(admin.min_offset(queue), admin.max_offset(queue))
        self._ends[queue] = end
        # RocketMQ: a moment after the last message gives the last message.
        at_time = await admin.offset_at(queue, start.value / 1000) if start.kind is StartKind.TIME else None
        return start.in_queue(first, end, at_time)

    async def run(self) -> int:
        shown, limit = 0, self._tail.limit
        last_progress = self._clock.monotonic()
        while not limit or shown < limit:
            batch = await self._consumer.poll(_POLL_SECONDS, limit - shown if limit else None)
            messages = self._since(batch)
            now = self._clock.monotonic()
            if batch:
                last_progress = now
            if messages:
                self._show(messages)
                shown += len(messages)
            if not self._tail.follow and not batch:
                if await self._is_at_end():
                    break
                if now - max(last_progress, self._changed_at) > _STALLED_SECONDS:
                    raise SkyrocketError(
                        f"nothing came of topic {self._tail.topic} for {_STALLED_SECONDS:g} s although there is more: "
                        "the warnings above say why; check brokers, permission and filter"
                    )
        return shown

    def _since(self, messages: list[ReceivedMessage]) -> list[ReceivedMessage]:
        """Brokers find a time only roughly: what is older is left out."""
        start = self._tail.begin
        if start.kind is not StartKind.TIME or self._tail.group is not None:
            return messages
        return [message for message in messages if message.store_timestamp >= start.value]

    async def _is_at_end(self) -> bool:
        queues, now = self._consumer.assignment, self._clock.monotonic()
        if queues != self._seen:
            self._seen, self._changed_at = queues, now
        for queue in queues - self._ends.keys():
            self._ends[queue] = await self._admin.max_offset(queue)
        if not queues:
            if now - self._changed_at > _WITHOUT_QUEUES_SECONDS:
                raise SkyrocketError(
                    f"group {self._tail.group} gave us no queue of {self._tail.topic} within "
                    f"{_WITHOUT_QUEUES_SECONDS:g} s: others have them all; stop one of them, or read without --group"
                )
            return False
        if self._tail.group is not None and now - self._changed_at < _SETTLED_SECONDS:
            return False  # queues come one by one
        return all(self._consumer.position(queue) >= self._ends[queue] for queue in queues)
