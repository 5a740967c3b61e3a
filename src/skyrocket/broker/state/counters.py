"""RocketMQ's statistics items: a name such as TOPIC_PUT_NUMS, a key such as a topic, and what came in over time.

    dispatched records ─▶ stored() ─┐
    answers to pulls   ─▶ pulled() ─┼─ tallies per queue ─▶ fold() ─▶ items ─▶ a sample every 10 s, 10 min and hour
    rare events        ─▶ add() ────┘

Puts are counted where records become readable, so whatever puts them is counted: producers, deliveries of delayed
messages, ends of transactions, messages that are sent back. The hot path only adds to a tally; names, keys and
samples are made when a sample is due.
"""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from operator import add
from typing import Final, TypeAlias, TypeVar

import numpy as np

from skyrocket.broker.state.spans import HOUR_MS, MINUTE_MS, Item, Span
from skyrocket.clock import Clock
from skyrocket.format.properties import find_property, whole_number
from skyrocket.format.property_bytes import INNER_NUM
from skyrocket.protocol.bodies.statistics import BrokerStatsData
from skyrocket.protocol.errors import SystemFailure
from skyrocket.remoting.peer import Peer
from skyrocket.store.log_columns import ColumnItems
from skyrocket.store.record_run import RecordRun, RunItems
from skyrocket.store.record_tuples import PROPERTIES, QUEUE, SIZE, DispatchItem
from skyrocket.store.topic_queue import TopicQueue

_logger = logging.getLogger(__name__)

TOPIC_PUT_NUMS: Final = "TOPIC_PUT_NUMS"
TOPIC_PUT_SIZE: Final = "TOPIC_PUT_SIZE"
QUEUE_PUT_NUMS: Final = "QUEUE_PUT_NUMS"
QUEUE_PUT_SIZE: Final = "QUEUE_PUT_SIZE"
GROUP_GET_NUMS: Final = "GROUP_GET_NUMS"
GROUP_GET_SIZE: Final = "GROUP_GET_SIZE"
QUEUE_GET_NUMS: Final = "QUEUE_GET_NUMS"
QUEUE_GET_SIZE: Final = "QUEUE_GET_SIZE"
GROUP_GET_LATENCY: Final = "GROUP_GET_LATENCY"
BROKER_PUT_NUMS: Final = "BROKER_PUT_NUMS"
BROKER_GET_NUMS: Final = "BROKER_GET_NUMS"
BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC: Final = "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC"
BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC: Final = "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC"
SNDBCK_PUT_NUMS: Final = "SNDBCK_PUT_NUMS"  # key topic@group
GROUP_ACK_NUMS: Final = "GROUP_ACK_NUMS"  # key topic@group
GROUP_CK_NUMS: Final = "GROUP_CK_NUMS"  # key topic@group

MOST_ITEMS: Final = 200_000
_AT_ONCE: Final = 500  # queues folded before others may work

_T = TypeVar("_T")

Meter: TypeAlias = Callable[[Peer, str, int, int], None]  # who, of which topic, messages, bytes

# Which part of a key, divided by `@`, is a topic, and which a group.
_TOPIC_AT: Final = dict.fromkeys(
    (
        TOPIC_PUT_NUMS,
        TOPIC_PUT_SIZE,
        QUEUE_PUT_NUMS,
        QUEUE_PUT_SIZE,
        GROUP_GET_NUMS,
        GROUP_GET_SIZE,
        QUEUE_GET_NUMS,
        QUEUE_GET_SIZE,
        SNDBCK_PUT_NUMS,
        GROUP_ACK_NUMS,
        GROUP_CK_NUMS,
    ),
    0,
)
_TOPIC_AT[GROUP_GET_LATENCY] = 1
_GROUP_AT: Final = {
    GROUP_GET_NUMS: 1,
    GROUP_GET_SIZE: 1,
    QUEUE_GET_NUMS: 2,
    QUEUE_GET_SIZE: 2,
    SNDBCK_PUT_NUMS: 1,
    GROUP_ACK_NUMS: 1,
    GROUP_CK_NUMS: 1,
    GROUP_GET_LATENCY: 2,
}


class Counters:
    """All items of a broker; `is_system` tells topics of the system, `by_queue` is whether queues have items too."""

    def __init__(
        self,
        clock: Clock,
        cluster_name: str,
        is_system: Callable[[str], bool],
        *,
        by_queue: bool = True,
        most_items: int = MOST_ITEMS,
    ) -> None:
        self.cluster_name = cluster_name
        self.stored_bytes = 0  # since the start
        self.slowest_pull_ms = 0.0
        self.read_meter: Meter | None = None  # set while reads are limited by quotas
        self.send_back_meter: Meter | None = None  # set with it
        self._clock = clock
        self._is_system = is_system
        self._by_queue = by_queue
        self._most_items = most_items
        self._is_full = False
        now = self._now()
        self._minute = Span(0, 10_000, 7, now)
        self._hour = Span(1, 10 * MINUTE_MS, 7, now)
        self._day = Span(2, HOUR_MS, 25, now)
        self._spans = (self._minute, self._hour, self._day)
        self._all_spans = sum(span.bit for span in self._spans)
        self._items: dict[tuple[str, str], Item] = {}
        self._overflow = Item(self._spans)
        self._overflow.waits = self._all_spans  # no sample is ever taken of it
        # Found once, so that a fold of ten thousand queues makes no keys.
        self._queue_puts: dict[TopicQueue, tuple[Item, Item]] = {}
        self._queue_pulls: dict[tuple[str, str, int], tuple[Item, Item, Item]] = {}
        self._lock = threading.Lock()  # a query for messages dispatches in a thread of its own
        self._puts: defaultdict[TopicQueue, list[int]] = defaultdict(_no_puts)
        self._pulls: defaultdict[tuple[str, str, int], list[float]] = defaultdict(_no_pulls)

    # Counting

    def stored(self, records: Sequence[DispatchItem]) -> None:
        """The store's listener: these records are readable now."""
        if isinstance(records, ColumnItems) and all(queue.simple for queue in records.queues):
            self._stored_columns(records)
            return
        with self._lock:
            puts = self._puts
            for record in records.appended if isinstance(records, RunItems) else records:
                if isinstance(record, RecordRun):
                    for part in record.parts:
                        tally = puts[part.queue]
                        tally[0] += part.end - part.at
                        tally[1] += record.end_of(part) - record.starts[part.at]
                    continue
                queue = record[QUEUE]
                tally = puts[queue]
                tally[0] += 1 if queue.simple else _messages_in(record)
                tally[1] += record[SIZE]

    def _stored_columns(self, records: ColumnItems) -> None:
        """The same of many records at once, each of them one message."""
        numbers, sizes = records.queue_numbers, records.columns.parts.sizes
        counts, totals = np.bincount(numbers), np.bincount(numbers, sizes).astype(np.int64)
        with self._lock:
            for queue, count, total in zip(records.queues, counts.tolist(), totals.tolist(), strict=True):
                tally = self._puts[queue]
                tally[0] += count
                tally[1] += total

    def pulled(self, group: str, topic: str, queue_id: int, messages: int, size: int, milliseconds: float) -> None:
        """A pull found messages, and how long the store took to find them."""
        if milliseconds > self.slowest_pull_ms:
            self.slowest_pull_ms = milliseconds
        tally = self._pulls[topic, group, queue_id]
        tally[0] += 1
        tally[1] += messages
        tally[2] += size
        tally[3] += milliseconds

    def sent_back(self, topic: str, group: str) -> None:
        """A consumer could not do with a message."""
        self.add(SNDBCK_PUT_NUMS, f"{topic}@{group}", 1)

    def add(self, name: str, key: str, value: int, times: int = 1) -> None:
        """Count something that happens now and then."""
        self._add(self._item(name, key), value, times)

    def _add(self, item: Item, value: int, times: int) -> None:
        item.sum += value
        item.times += times
        if item.waits != self._all_spans:
            for span in self._spans:
                if not item.waits & span.bit:
                    span.changed.append(item)
            item.waits = self._all_spans

    def _item(self, name: str, key: str) -> Item:
        """The item; when there are too many, one that nobody can ask for."""
        item = self._items.get((name, key))
        if item is not None:
            return item
        if len(self._items) >= self._most_items and key != self.cluster_name:
            if not self._is_full:
                self._is_full = True
                _logger.warning("no more statistics items are kept most=%d first=%s@%s", self._most_items, name, key)
            return self._overflow
        item = self._items[name, key] = Item(self._spans)
        return item

    def fold(self) -> None:
        """Bring the items up to date."""
        for _ in self._fold_in_steps():
            pass

    def _fold_in_steps(self) -> Iterator[None]:
        with self._lock:
            puts, self._puts = self._puts, defaultdict(_no_puts)
        for some_puts in _in_parts(list(puts.items())):
            self._fold_puts(some_puts)
            yield
        pulls, self._pulls = self._pulls, defaultdict(_no_pulls)
        for some_pulls in _in_parts(list(pulls.items())):
            self._fold_pulls(some_pulls)
            yield

    def _fold_puts(self, puts: Sequence[tuple[TopicQueue, list[int]]]) -> None:
        topics: defaultdict[str, list[int]] = defaultdict(_no_puts)
        for queue, (messages, size) in puts:
            topic = topics[queue.topic]
            topic[0] += messages
            topic[1] += size
        for name, (messages, size) in topics.items():
            self.add(TOPIC_PUT_NUMS, name, messages, messages)
            self.add(TOPIC_PUT_SIZE, name, size, messages)
        total = sum(messages for messages, _ in topics.values())
        others = sum(messages for name, (messages, _) in topics.items() if not self._is_system(name))
        self.stored_bytes += sum(size for _, size in topics.values())
        self.add(BROKER_PUT_NUMS, self.cluster_name, total, total)
        self.add(BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC, self.cluster_name, others, others)
        if self._by_queue:
            for queue, (messages, size) in puts:
                pair = self._queue_puts.get(queue)
                if pair is None:
                    key = f"{queue.topic}@{queue.queue_id}"
                    pair = self._queue_puts[queue] = self._item(QUEUE_PUT_NUMS, key), self._item(QUEUE_PUT_SIZE, key)
                self._add(pair[0], messages, messages)
                self._add(pair[1], size, messages)

    def _fold_pulls(self, pulls: Sequence[tuple[tuple[str, str, int], list[float]]]) -> None:
        groups: defaultdict[tuple[str, str], list[float]] = defaultdict(_no_pulls)
        for (topic, group, _), tally in pulls:
            groups[topic, group] = list(map(add, groups[topic, group], tally))
        for (topic, group), (times, messages, size, _) in groups.items():
            self.add(GROUP_GET_NUMS, f"{topic}@{group}", int(messages), int(times))
            self.add(GROUP_GET_SIZE, f"{topic}@{group}", int(size), int(times))
            self.add(BROKER_GET_NUMS, self.cluster_name, int(messages), int(times))
            if not self._is_system(topic):
                self.add(BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC, self.cluster_name, int(messages), int(times))
        if self._by_queue:
            for place, (times, messages, size, milliseconds) in pulls:
                items = self._queue_pulls.get(place)
                if items is None:
                    topic, group, queue_id = place
                    key = f"{topic}@{queue_id}@{group}"
                    items = self._queue_pulls[place] = (
                        self._item(QUEUE_GET_NUMS, key),
                        self._item(QUEUE_GET_SIZE, key),
                        self._item(GROUP_GET_LATENCY, f"{queue_id}@{topic}@{group}"),
                    )
                for item, value in zip(items, (messages, size, milliseconds), strict=True):
                    self._add(item, round(value), int(times))

    # Samples

    def sample(self) -> Iterator[None]:
        """Take the samples that are due, in steps between which others may work; asked about once a second."""
        now = self._now()
        due = [span for span in self._spans if now >= span.due_ms]
        if due:
            yield from self._fold_in_steps()
        for span in due:
            yield from span.take(now)

    def _now(self) -> int:
        return int(self._clock.monotonic() * 1000)

    # Reading

    def view(self, name: str, key: str) -> BrokerStatsData:
        """VIEW_BROKER_STATS_DATA; raises SystemFailure when nothing was ever counted under name and key."""
        self.fold()
        item = self._items.get((name, key))
        if item is None:
            raise SystemFailure(f"The stats <{name}> <{key}> not exist")
        return BrokerStatsData(
            minute=item.summary(self._minute),
            hour=item.summary(self._hour),
            day=item.summary(self._day),
        )

    def rate(self, name: str, key: str) -> float:
        """Per second, over the last minute."""
        item = self._items.get((name, key))
        return item.summary(self._minute).tps if item is not None else 0.0

    def total(self, name: str) -> int:
        """A count of the whole broker since its start."""
        self.fold()
        item = self._items.get((name, self.cluster_name))
        return item.sum if item is not None else 0

    def sums(self, *names: str) -> list[tuple[str, str, int]]:
        """Name, key and count since the start of all items with these names."""
        self.fold()
        return [(name, key, item.sum) for (name, key), item in self._items.items() if name in names]

    @property
    def item_count(self) -> int:
        return len(self._items)

    # Forgetting

    def keep_only(self, topic_exists: Callable[[str], bool], group_exists: Callable[[str], bool]) -> None:
        """Drop the items of topics and groups that were deleted."""
        self.fold()
        gone: list[tuple[str, str]] = []
        for name, key in self._items:
            parts = key.split("@", 2)
            topic_at, group_at = _TOPIC_AT.get(name), _GROUP_AT.get(name)
            if (topic_at is not None and not topic_exists(parts[topic_at])) or (
                group_at is not None and not group_exists(parts[group_at])
            ):
                gone.append((name, key))
        for place in gone:
            del self._items[place]
        self._queue_puts.clear()
        self._queue_pulls.clear()
        self._is_full = self._is_full and len(self._items) >= self._most_items


def _in_parts(whole: list[_T]) -> Iterator[list[_T]]:
    return (whole[begin : begin + _AT_ONCE] for begin in range(0, len(whole), _AT_ONCE))


def _no_puts() -> list[int]:
    return [0, 0]  # messages, bytes


def _no_pulls() -> list[float]:
    return [0, 0, 0, 0.0]  # answers, messages, bytes, milliseconds


def _messages_in(record: DispatchItem) -> int:
    """A batch that is one record counts as the messages that it has."""
    number = whole_number(find_property(record[PROPERTIES], INNER_NUM))
    return 1 if number is None else number
