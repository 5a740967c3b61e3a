"""Which client of a group consumes a queue in order. A lock lapses by itself; the holder renews it every 20 s."""

from collections.abc import Iterable
from typing import NamedTuple

from skyrocket.clock import Clock
from skyrocket.model.message_queue import MessageQueue

LOCK_SECONDS = 60.0


class _Lock(NamedTuple):
    client_id: str
    renewed_at: float  # monotonic


class QueueLocks:
    """The locks of all groups; a restart forgets them, and clients lock again within 20 s."""

    def __init__(self, clock: Clock, lock_seconds: float = LOCK_SECONDS) -> None:
        self._clock = clock
        self._lock_seconds = lock_seconds
        self._groups: dict[str, dict[MessageQueue, _Lock]] = {}

    def lock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> tuple[MessageQueue, ...]:
        """Lock or renew what is free, lapsed or the client's own; returns the queues that the client now holds."""
        locks = self._groups.get(group, {})
        now = self._clock.monotonic()
        held = tuple(queue for queue in dict.fromkeys(queues) if self._is_free_for(client_id, locks.get(queue), now))
        if held:
            self._groups.setdefault(group, locks).update((queue, _Lock(client_id, now)) for queue in held)
        return held

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Give back those of the queues that are the client's own."""
        locks = self._groups.get(group)
        if locks is None:
            return
        for queue in queues:
            if (lock := locks.get(queue)) is not None and lock.client_id == client_id:
                del locks[queue]
        if not locks:
            del self._groups[group]

    def holder(self, group: str, queue: MessageQueue) -> str | None:
        """The client whose lock on a queue has not lapsed."""
        lock = self._groups.get(group, {}).get(queue)
        return lock.client_id if lock is not None and self._holds(lock, self._clock.monotonic()) else None

    def are_held(self, group: str) -> bool:
        """Whether any client of the group consumes in order; its failed messages are dead letters at once."""
        now = self._clock.monotonic()
        return any(self._holds(lock, now) for lock in self._groups.get(group, {}).values())

    def forget_lapsed(self) -> None:
        """Drop locks that nobody holds any more, so that groups that are gone take no memory."""
        now = self._clock.monotonic()
        for group, locks in list(self._groups.items()):
            kept = {queue: lock for queue, lock in locks.items() if self._holds(lock, now)}
            if kept:
                self._groups[group] = kept
            else:
                del self._groups[group]

    def _is_free_for(self, client_id: str, lock: _Lock | None, now: float) -> bool:
        return lock is None or lock.client_id == client_id or not self._holds(lock, now)

    def _holds(self, lock: _Lock, now: float) -> bool:
        return now - lock.renewed_at <= self._lock_seconds
