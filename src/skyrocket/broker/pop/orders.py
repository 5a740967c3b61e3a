"""What ordered pop consumers have in hand: one batch of a queue at a time, kept in `consumerOrderInfo.json`.

As long as a message of the batch is neither acknowledged nor visible again the queue is blocked for its group. Only the
consumer whose answer got lost gets the same batch once more: it asks with the same attempt id.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.clock import Clock
from skyrocket.format.config_files import OrderInfo, OrderInfos
from skyrocket.store.config_file import ConfigFile

FORGOTTEN_AFTER_MS: Final = 24 * 3_600_000


class UnknownOffset(Exception):
    """The message is not one of the batch."""


class Batch(NamedTuple):
    """How often messages of a new batch were consumed before: (offset, count), and the least of all."""

    counts: Sequence[tuple[int, int]]
    least: int


class OrderTable(SavedTable[OrderInfos]):
    """`topic@group` → queue → the batch in hand."""

    saved_with_offsets = True

    def __init__(self, file: ConfigFile[OrderInfos], clock: Clock) -> None:
        super().__init__(file, clock, save_at_once=False)
        self._infos: dict[tuple[str, str], dict[int, OrderInfo]] = {}
        self._loaded = OrderInfos()

    def content(self) -> OrderInfos:
        table = {f"{topic}@{group}": dict(queues) for (topic, group), queues in self._infos.items()}
        return replace(self._loaded, table=table)

    def _take(self, content: OrderInfos) -> None:
        self._loaded = content
        self._infos = {}
        for key, queues in content.table.items():
            topic, _, group = key.partition("@")
            self._infos[topic, group] = dict(queues)

    def __len__(self) -> int:
        return sum(map(len, self._infos.values()))

    def find(self, topic: str, group: str, queue_id: int) -> OrderInfo | None:
        """The batch of a queue."""
        return self._infos.get((topic, group), {}).get(queue_id)

    def is_blocked(self, topic: str, group: str, queue_id: int, attempt_id: str | None) -> bool:
        """Whether a pop must wait for messages that are in somebody's hand."""
        info = self.find(topic, group, queue_id)
        if info is None or (attempt_id is not None and attempt_id == info.attempt_id):
            return False
        now_ms = self._clock.now_ms()
        return any(now_ms < visible_ms for visible_ms in _visible_times(info))

    def visible_ms(self, topic: str, group: str, queue_id: int) -> int | None:
        """When a queue is free again if nobody acknowledges anything; None without a batch in hand."""
        info = self.find(topic, group, queue_id)
        return None if info is None else max(_visible_times(info), default=None)

    def begin(
        self,
        topic: str,
        group: str,
        queue_id: int,
        pop_time: int,
        invisible_ms: int,
        offsets: Sequence[int],
        attempt_id: str | None,
    ) -> Batch:
        """A batch is handed out in place of the one before."""
        before = self.find(topic, group, queue_id)
        counts: dict[int, int] = {}
        if before is not None:
            known = before.consumed_counts or {}
            if attempt_id is not None and attempt_id == before.attempt_id:
                counts = dict(known)
            else:
                earlier = set(before.offsets)
                counts = {offset: known.get(offset, 0) + 1 for offset in offsets if offset in earlier}
        self._put(
            topic,
            group,
            queue_id,
            OrderInfo(
                pop_time,
                invisible_ms,
                list(offsets),
                counts or None,
                last_consume_time=self._clock.now_ms(),
                attempt_id=attempt_id,
            ),
        )
        least = min(counts.values()) if len(counts) == len(offsets) and counts else 0
        return Batch(list(counts.items()), least)

    def acknowledge(self, topic: str, group: str, queue_id: int, queue_offset: int, pop_time: int) -> int | None:
        """Where the queue goes on now; None for a batch that is no longer in hand. Raises UnknownOffset."""
        info = self.find(topic, group, queue_id)
        if info is None:
            return queue_offset + 1
        if not info.offsets:
            raise UnknownOffset
        if info.pop_time != pop_time:
            return None
        if queue_offset not in info.offsets:
            raise UnknownOffset
        info = replace(info, committed=info.committed | 1 << info.offsets.index(queue_offset))
        self._put(topic, group, queue_id, info)
        return next(_unacknowledged(info), info.offsets[-1] + 1)

    def hide_until(
        self, topic: str, group: str, queue_id: int, queue_offset: int, pop_time: int, visible_ms: int
    ) -> None:
        """Hide one message of the batch in hand until another time than was said at first."""
        info = self.find(topic, group, queue_id)
        if info is not None and info.pop_time == pop_time and queue_offset in info.offsets:
            times = {**(info.next_visible_times or {}), queue_offset: visible_ms}
            self._put(topic, group, queue_id, replace(info, next_visible_times=times))

    def forget(self, topic: str, group: str, queue_id: int) -> None:
        """The group goes on elsewhere: nothing of the queue is in hand."""
        queues = self._infos.get((topic, group), {})
        if queues.pop(queue_id, None) is not None:
            self.dirty = True
            if not queues:
                del self._infos[topic, group]

    def queues(self) -> list[tuple[str, str, int, OrderInfo]]:
        """All that is in hand: topic, group, queue, batch."""
        return [
            (topic, group, queue_id, info)
            for (topic, group), queues in self._infos.items()
            for queue_id, info in queues.items()
        ]

    def _put(self, topic: str, group: str, queue_id: int, info: OrderInfo) -> None:
        self._infos.setdefault((topic, group), {})[queue_id] = info
        self.dirty = True


def _unacknowledged(info: OrderInfo) -> Iterator[int]:
    return (offset for bit, offset in enumerate(info.offsets) if not info.committed >> bit & 1)


def _visible_times(info: OrderInfo) -> list[int]:
    usual = info.pop_time + (info.invisible_ms or 0)
    changed = info.next_visible_times or {}
    return [changed.get(offset, usual) for offset in _unacknowledged(info)]
