"""Pulls that found nothing wait here for messages of their queue, or for their time to run out.

    pull ─▶ nothing there ─▶ hold ─┬─ the store dispatched a record of that queue with a wanted tag ─▶ pull again
                                   ├─ every 5 s: the queue is longer than it was                    ─▶ pull again
                                   └─ the time is over                                              ─▶ pull again

Everything happens in the event loop's thread. Nothing is sent to a client that waits. When many are woken at once they
are run in slices, a slice in a turn of the loop: others come in between.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from skyrocket.broker.rules.subscriptions import MessageFilter
from skyrocket.clock import ServiceClock
from skyrocket.format.java_hash import java_hash
from skyrocket.format.properties import find_property
from skyrocket.format.property_bytes import TAGS
from skyrocket.remoting.answers import LaterAnswer
from skyrocket.remoting.peer import Peer
from skyrocket.store.record_tuples import PROPERTIES, QUEUE, QUEUE_OFFSET, DispatchItem

CHECK_SECONDS = 5.0
_SLICE = 100
_TICK_SECONDS = 0.5  # how exactly time-outs are kept; RocketMQ: 5 s

QueueKey = tuple[str, int]


@dataclass(slots=True, eq=False)
class HeldPull:
    """One pull that waits."""

    later: LaterAnswer
    peer: Peer
    queue: QueueKey
    queue_offset: int
    wanted: MessageFilter
    deadline: float  # monotonic


class LongPolling:
    """The pulls that wait, by queue; `resume` runs one again, `max_offset` tells how long a queue is."""

    def __init__(self, clock: ServiceClock, max_offset: Callable[[str, int], int]) -> None:
        self.resume: Callable[[HeldPull], None] | None = None  # set by the pull processor, before the first is held
        self._clock = clock
        self._max_offset = max_offset
        self.held: dict[QueueKey, list[HeldPull]] = {}
        self.next_check = 0.0

    @property
    def held_count(self) -> int:
        return sum(map(len, self.held.values()))

    def hold(self, pull: HeldPull) -> None:
        """Let a pull wait."""
        self.held.setdefault(pull.queue, []).append(pull)

    def arrived(self, items: Sequence[DispatchItem]) -> None:
        """The store's listener: these records are readable now."""
        if not self.held:
            return
        news: dict[QueueKey, list[DispatchItem]] = {}
        for item in items:
            key = (item[QUEUE].topic, item[QUEUE].queue_id)
            if key in self.held:
                news.setdefault(key, []).append(item)
        for key, records in news.items():
            self._wake(key, partial(_wants_any, records))

    def check(self) -> None:
        """Wake those whose time is over, and every 5 s those whose queue has grown unseen."""
        now = self._clock.monotonic()
        thorough = now >= self.next_check
        if thorough:
            self.next_check = now + CHECK_SECONDS
        for key, pulls in list(self.held.items()):
            if thorough:
                self._wake(key, partial(_is_due, now, self._max_offset(*key)))
            elif any(now >= pull.deadline for pull in pulls):
                self._wake(key, partial(_is_due, now, 0))

    def wake_all(self) -> None:
        """The broker stops: everyone is answered."""
        assert self.resume is not None
        held, self.held = self.held, {}
        for pulls in held.values():
            for pull in pulls:
                if pull.later.is_open:
                    self.resume(pull)

    def _wake(self, key: QueueKey, is_due: Callable[[HeldPull], bool]) -> None:
        due: list[HeldPull] = []
        kept: list[HeldPull] = []
        for pull in self.held.get(key, ()):
            if pull.later.is_open:  # else its connection is gone
                (due if is_due(pull) else kept).append(pull)
        if kept:  # only now: where one's filter fails, all still wait and are looked at again
            self.held[key] = kept
        else:
            self.held.pop(key, None)
        self._resume(due)

    def _resume(self, due: list[HeldPull]) -> None:
        assert self.resume is not None
        for pull in due[:_SLICE]:
            if pull.later.is_open:
                self.resume(pull)
        if len(due) > _SLICE:
            asyncio.get_running_loop().call_soon(self._resume, due[_SLICE:])

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            await self._clock.sleep(_TICK_SECONDS)
            if self.held:
                self.check()


def _is_due(now: float, queue_end: int, pull: HeldPull) -> bool:
    return now >= pull.deadline or queue_end > pull.queue_offset


def _wants_any(records: Sequence[DispatchItem], pull: HeldPull) -> bool:
    """Whether one of the new records is for this pull."""
    if records[-1][QUEUE_OFFSET] < pull.queue_offset:
        return False
    codes, has_properties, _ = pull.wanted
    if has_properties is not None:
        return any(has_properties(record[PROPERTIES]) for record in records)
    return codes is None or any(_tags_code(record[PROPERTIES]) in codes for record in records)


def _tags_code(properties: bytes) -> int:
    tags = find_property(properties, TAGS)
    return 0 if tags is None else java_hash(tags.decode("utf-8", "replace"))
