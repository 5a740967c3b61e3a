"""Pops and notifications that found nothing wait here, for messages or for their time to run out.

    nothing there ─▶ hold ─┬─ a wanted message arrived in the topic, or one of the group in its retry topic ─▶ again
                           ├─ a queue that an ordered batch had blocked is free again                      ─▶ again
                           └─ the time is over                                                             ─▶ again

One message wakes one request of every group, unlike a pull: who has it keeps it from the others. What is left wakes the
next one (`wake`). Time runs out at `bornTime` + `pollTime`, which the client's clock says; `on_our_clock` turns it into
monotonic time when the request arrives, so that nobody waits for a wall clock that was set back.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from skyrocket.broker.pop.orders import OrderTable
from skyrocket.broker.rules.subscriptions import MessageFilter
from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.clock import Clock, ServiceClock
from skyrocket.format.java_hash import java_hash
from skyrocket.format.properties import find_property
from skyrocket.format.property_bytes import ORIGIN_GROUP, TAGS
from skyrocket.model.pop_retry import normal_topic
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.remoting.answers import LaterAnswer
from skyrocket.remoting.peer import Peer
from skyrocket.store.record_tuples import PROPERTIES, QUEUE, QUEUE_OFFSET, DispatchItem

ANY_QUEUE: Final = -1
_TICK_SECONDS: Final = 0.05
_GIVEN_UP_MS: Final = 50  # so much before its time is over a request counts as too late to wait
_FORCE_EVERY: Final = 800  # every 800th message wakes, whatever the subscription says


def monotonic_ms(clock: Clock) -> int:
    """Time that nobody sets, in the unit of requests."""
    return int(clock.monotonic() * 1000)


def on_our_clock(born_time: int, clock: Clock) -> int:
    """When a request was born, in monotonic time; one that does not say it was born now."""
    age_ms = clock.now_ms() - born_time if born_time > 0 else 0
    return monotonic_ms(clock) - age_ms


class Held(Enum):
    """What became of a request that wanted to wait."""

    WAITS = "waits"
    FULL = "full"
    TOO_LATE = "too late"


@dataclass(slots=True, eq=False)
class HeldRequest:
    """One request that waits; `header` is the pop or notification."""

    later: LaterAnswer
    peer: Peer
    header: Any
    group: str
    topic: str
    queue_id: int  # ANY_QUEUE: of all queues
    expires_ms: int  # monotonic, as `on_our_clock` says
    wanted: MessageFilter

    @property
    def is_open(self) -> bool:
        return self.later.is_open


class HeldPops:
    """The requests that wait, by topic, group and queue; `resume` runs one again.

    The oldest of a queue is woken first, or the youngest where `youngest_first`.
    """

    def __init__(
        self,
        clock: ServiceClock,
        peer_clock: Clock,
        settings: LiveSettings,
        *,
        youngest_first: bool,
    ) -> None:
        self.resume: Callable[[HeldRequest], None] | None = None  # set before the first is held
        self._clock = clock  # of messages: when a queue is free
        self._peer_clock = peer_clock  # of clients: how long they wait
        self._settings = settings
        self._last = -1 if youngest_first else 0
        self._held: dict[str, dict[str, dict[int, list[HeldRequest]]]] = {}
        self._count = 0
        self._unblocked: list[tuple[int, str, str, int]] = []  # heap: when a queue is free again, topic, group, queue
        self._known_unblocked: set[tuple[int, str, str, int]] = set()
        self.is_stopped = False

    @property
    def held_count(self) -> int:
        return self._count

    def count(self, topic: str, group: str, queue_id: int) -> int:
        """How many wait for a queue."""
        held = self._held.get(topic, {}).get(group, {}).get(queue_id, ())
        return sum(request.is_open for request in held)

    def hold(self, request: HeldRequest, poll_ms: int) -> Held:
        """Let a request wait, if there is room and time for it."""
        if poll_ms <= 0 or self.is_stopped or monotonic_ms(self._peer_clock) > request.expires_ms - _GIVEN_UP_MS:
            return Held.TOO_LATE
        if self._count >= self._settings.broker.max_held_pops:
            self._drop_closed()
            if self._count >= self._settings.broker.max_held_pops:
                return Held.FULL
        queues = self._held.setdefault(request.topic, {}).setdefault(request.group, {})
        held = queues.setdefault(request.queue_id, [])
        if len(held) > self._settings.broker.max_held_pops_per_queue:
            return Held.FULL
        held.append(request)
        self._count += 1
        return Held.WAITS

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def arrived(self, items: Sequence[DispatchItem]) -> None:
        """The store's listener: these records are readable now."""
        if not self._count:
            return
        woken: set[tuple[str, int]] = set()  # the first takes what came together, or wakes the next
        for item in items:
            topic, queue_id = item[QUEUE].topic, item[QUEUE].queue_id
            if topic.startswith(RETRY_PREFIX):
                group = (find_property(item[PROPERTIES], ORIGIN_GROUP) or b"").decode("utf-8", "replace")
                origin = normal_topic(topic, group)
                if group and origin != topic and (topic, 0) not in woken and self.wake(origin, group, queue_id):
                    woken.add((topic, 0))
                continue
            groups = self._held.get(topic)
            if not groups:
                continue
            for group in list(groups):
                if (group, queue_id) not in woken and self.wake(topic, group, queue_id, item):
                    woken.add((group, queue_id))

    def wake(self, topic: str, group: str, queue_id: int, item: DispatchItem | None = None) -> bool:
        """Run one request of a group again: of those for any queue, else of those for this one."""
        queues = self._held.get(topic, {}).get(group)
        if not queues:
            return False
        for key in dict.fromkeys((ANY_QUEUE, queue_id)):
            request = self._next(queues.get(key), item)
            if request is not None:
                self._remove(request)
                assert self.resume is not None
                self.resume(request)
                return True
        return False

    def _next(self, held: list[HeldRequest] | None, item: DispatchItem | None) -> HeldRequest | None:
        if not held:
            return None
        for request in reversed(held) if self._last else held:
            if request.is_open and (item is None or _is_for(request.wanted, item)):
                return request
        return None

    # ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def free_at(self, topic: str, group: str, queue_id: int, free_ms: int) -> None:
        """An ordered batch blocks a queue until then: whoever waits for it is woken."""
        entry = (free_ms, topic, group, queue_id)
        if entry not in self._known_unblocked:
            self._known_unblocked.add(entry)
            heapq.heappush(self._unblocked, entry)

    def check(self) -> None:
        """Wake those whose time is over, and those whose queue is free again."""
        while self._unblocked and self._unblocked[0][0] <= self._clock.now_ms():
            entry = heapq.heappop(self._unblocked)
            self._known_unblocked.discard(entry)
            self.wake(*entry[1:])
        if not self._count:
            return
        assert self.resume is not None
        now_ms = monotonic_ms(self._peer_clock)
        for request in [request for request in self._all() if request.expires_ms <= now_ms or not request.is_open]:
            if self._remove(request) and request.is_open:
                self.resume(request)

    def wake_all(self) -> None:
        """Run everyone again: what they are told may be another thing now."""
        for request in self._all():
            if self._remove(request) and request.is_open:
                assert self.resume is not None
                self.resume(request)

    def stop(self) -> None:
        """The broker stops: everyone is answered, nobody waits any more."""
        self.is_stopped = True
        self.wake_all()

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            free_ms = self._unblocked[0][0] if self._unblocked else None
            await self._clock.sleep_until(free_ms, _TICK_SECONDS)
            self.check()

    # ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _all(self) -> list[HeldRequest]:
        return [
            request
            for groups in self._held.values()
            for queues in groups.values()
            for held in queues.values()
            for request in held
        ]

    def _drop_closed(self) -> None:
        for request in self._all():
            if not request.is_open:
                self._remove(request)

    def _remove(self, request: HeldRequest) -> bool:
        """False when it does not wait any more: it was woken by one that was woken before."""
        groups = self._held.get(request.topic, {})
        queues = groups.get(request.group, {})
        held = queues.get(request.queue_id, [])
        if request not in held:
            return False
        held.remove(request)
        self._count -= 1
        if not held:
            del queues[request.queue_id]
        if not queues:
            del groups[request.group]
        if not groups:
            del self._held[request.topic]
        return True


def _is_for(wanted: MessageFilter, item: DispatchItem) -> bool:
    if item[QUEUE_OFFSET] % _FORCE_EVERY == 0:
        return True
    codes, has_properties, _ = wanted
    if has_properties is not None:
        return has_properties(item[PROPERTIES])
    if codes is None:
        return True
    tags = find_property(item[PROPERTIES], TAGS)
    return (0 if tags is None else java_hash(tags.decode("utf-8", "replace"))) in codes


class PopPolling:
    """Pops and notifications that wait, with the ordered batches that block queues for them."""

    def __init__(self, orders: OrderTable, clock: ServiceClock, peer_clock: Clock, settings: LiveSettings) -> None:
        self.orders = orders
        self.pops = HeldPops(clock, peer_clock, settings, youngest_first=False)
        self.notifications = HeldPops(clock, peer_clock, settings, youngest_first=True)
        self._clock = clock

    def arrived(self, items: Sequence[DispatchItem]) -> None:
        """The store's listener: these records are readable now."""
        self.pops.arrived(items)
        self.notifications.arrived(items)

    def wake(self, topic: str, group: str, queue_id: int) -> None:
        """There is something to pop in a queue."""
        self.pops.wake(topic, group, queue_id)
        self.notifications.wake(topic, group, queue_id)

    def wake_all(self) -> None:
        """Let everyone try again."""
        self.pops.wake_all()
        self.notifications.wake_all()

    def free_at(self, topic: str, group: str, queue_id: int) -> None:
        """Let those who wait for an ordered queue try again when its batch is visible again."""
        free_ms = self.orders.visible_ms(topic, group, queue_id)
        if free_ms is not None and free_ms > self._clock.now_ms():
            self.pops.free_at(topic, group, queue_id, free_ms)
            self.notifications.free_at(topic, group, queue_id, free_ms)

    def stop(self) -> None:
        """The broker stops: everyone who waits is answered."""
        self.pops.stop()
        self.notifications.stop()
