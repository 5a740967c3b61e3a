"""Moves a cluster's clock far, from moment to moment, so that everything happens in its order.

    stop at the next moment that a service waits for, at the latest after an hour
        ▼  services do what is due; what they stored is in its queues
    consumers take it, and may send it back: then there is a new moment to stop at
        ▼
    … until the time that was asked for

What brokers do is complete when `advance` returns. Clients live in real time: consumers that are connected are waited
for until they have committed or sent back what they fetched, else until nothing has happened for a little while.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from skyrocket.broker.broker import Broker
from skyrocket.broker.state.counters import SNDBCK_PUT_NUMS
from skyrocket.store.message_store import MessageStore
from skyrocket.testing.movable_clock import MovableClock, file_time_ms

HOUR_MS: Final = 3_600_000
REACTION_SECONDS: Final = 0.25  # as long as nothing happens
TOGETHER_MS: Final = 99  # brokers look ten times a second: what is due within one look happens in one stop
_CLEAN_MS: Final = 10_000  # as often as a store does it by itself: files expire at one hour of the day alone
_DISPATCH_SECONDS: Final = 5.0
_FETCH_SECONDS: Final = 1.0
_REACTIONS_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.002


def next_stop(now_ms: int, due_ms: int | None, target_ms: int) -> int:
    """Where the clock stops next; every hour, because files expire at hours of the day."""
    stop = now_ms + HOUR_MS
    if due_ms is not None:
        stop = min(stop, max(due_ms, now_ms) + TOGETHER_MS)
    return min(stop, target_ms)


class TimeTravel:
    """Moves one clock for the brokers that run at the time."""

    def __init__(
        self, clock: MovableClock, brokers: Callable[[], Sequence[Broker]], reaction_seconds: float = REACTION_SECONDS
    ) -> None:
        self._clock = clock
        self._brokers = brokers
        self._reaction_seconds = reaction_seconds
        self._cleaned_ms = clock.now_ms()

    async def advance(self, distance_ms: int) -> None:
        """Let so much time pass. Raises ServiceStuck."""
        target_ms = self._clock.now_ms() + distance_ms
        await self._settle_files()
        while True:
            await self._clock.look_again()  # services learn what has come since they looked
            await self._dispatched()
            now_ms = self._clock.now_ms()
            if now_ms >= target_ms:
                return
            before = self._consumption()
            await self._clock.move_to(next_stop(now_ms, self._clock.next_due_ms(), target_ms))
            await self._dispatched()
            await self._clean()
            if self._consumption().stored != before.stored:
                await self._reactions(before)

    def _stores(self) -> list[MessageStore]:
        return [broker.store for broker in self._brokers()]

    async def _settle_files(self) -> None:
        """What was written until now is on disk before any time passes, and is seen to be older than what follows."""
        began = file_time_ms()
        for store in self._stores():
            await asyncio.to_thread(store.flush)
        while file_time_ms() == began:
            await asyncio.sleep(0.001)

    async def _dispatched(self) -> None:
        """Wait until what is stored is in its queues; with SYNC_FLUSH the disk comes first."""
        deadline = time.monotonic() + _DISPATCH_SECONDS
        await asyncio.sleep(0)
        while any(store.dispatch_lag_bytes for store in self._stores()) and time.monotonic() < deadline:
            await asyncio.sleep(_POLL_SECONDS)

    async def _clean(self) -> None:
        if self._clock.now_ms() - self._cleaned_ms >= _CLEAN_MS:
            self._cleaned_ms = self._clock.now_ms()
            for store in self._stores():
                await asyncio.to_thread(store.cleaner.clean)

    # ── clients ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _reactions(self, before: "_Consumption") -> None:
        """Wait for consumers: until they are known to be through, or nothing has happened for a while."""
        began = quiet_since = time.monotonic()
        seen = before
        while True:
            now, current = time.monotonic(), self._consumption()
            if current != seen:
                seen, quiet_since = current, now
            if current.is_done_since(before) or now - began > _REACTIONS_SECONDS:
                return
            fetching = current.unfetched and now - began < _FETCH_SECONDS
            if not fetching and now - quiet_since >= self._reaction_seconds:
                return
            await asyncio.sleep(_POLL_SECONDS)

    def _consumption(self) -> "_Consumption":
        found = _Consumption()
        for broker in self._brokers():
            found.stored += broker.store.commit_log.written_offset
            found.sent_back += sum(count for _, _, count in broker.parts.counters.sums(SNDBCK_PUT_NUMS))
            for queue in broker.store.queues:
                for group in broker.tables.consumers.groups_of(queue.topic):
                    pulled = broker.tables.offsets.pulled(group, queue.topic, queue.queue_id)
                    committed = broker.tables.offsets.committed(group, queue.topic, queue.queue_id)
                    found.add(queue.max_offset, pulled, committed)
        return found


@dataclass(slots=True)
class _Consumption:
    """How far connected consumers are, all groups and queues together."""

    stored: int = 0
    fetched: int = 0  # offsets
    unfetched: int = 0  # messages of queues that somebody pulls
    unpulled: int = 0  # messages of queues that nobody has pulled yet, although they are subscribed
    in_hand: int = 0  # fetched, not committed
    sent_back: int = 0

    def add(self, max_offset: int, pulled: int | None, committed: int | None) -> None:
        if pulled is None:
            self.unpulled += max_offset
        else:
            self.fetched += pulled
            self.unfetched += max(0, max_offset - pulled)
            self.in_hand += max(0, pulled - (committed or 0))

    def is_done_since(self, before: "_Consumption") -> bool:
        """Whether everything was fetched, and what was is committed or came back; most clients commit late."""
        all_fetched = not self.unfetched and not self.unpulled
        return all_fetched and (not self.in_hand or self.sent_back - before.sent_back >= self.fetched - before.fetched)
