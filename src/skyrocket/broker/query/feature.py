"""Queries: messages by key, by unique key and by id, and what stands in a queue."""

from collections.abc import Mapping
from typing import Final

from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.parts import Parts
from skyrocket.format.queue_entry import QueueEntry
from skyrocket.format.record import decode_record
from skyrocket.model.message import StoredMessage
from skyrocket.model.property_names import INNER_MULTI_DISPATCH, REAL_TOPIC
from skyrocket.model.topic import GIVEN_UP_TOPIC, HALF_TOPIC, LMQ_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC
from skyrocket.protocol.bodies.tables import QueueEntries, QueueEntryInfo
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import NoPermission, QueryNotFound, SystemFailure
from skyrocket.protocol.requests.query import QueryConsumeQueue, QueryMessage, QueryMessageAnswer, ViewMessageById
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import UNSET_REMARK, Answered, Handlers, serve
from skyrocket.store.consume_queue import ConsumeQueue

MOST_ENTRIES: Final = 10_000
_TAG: Final = "T"
_UNIQUE: Final = "U"
_PARKING_TOPICS: Final = frozenset({SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC, GIVEN_UP_TOPIC})


class QueryFeature(Feature):
    """Answers with records as they are in the log.

    Searches run in threads of their own: a slow disk must not hold up the event loop.
    """

    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._consumers = parts.tables.consumers
        self._workers = parts.workers

    def handlers(self) -> Handlers:
        return (
            serve(QueryMessage, self.query, in_thread=True),
            serve(ViewMessageById, self.view, in_thread=True),
            serve(QueryConsumeQueue, self.entries),
        )

    def runtime_rows(self) -> Mapping[str, str]:
        return {"queryThreadPoolQueueHeadWaitTimeMills": str(self._workers.head_wait_ms)}

    def query(self, _: Peer, header: QueryMessage, __: Body) -> Answered:
        """Messages with a key, or with a unique key."""
        unique = header.unique_key_query is True or header.index_type == _UNIQUE
        # RocketMQ: how many a search for a unique key may find is the broker's to say.
        most = self._store.config.default_query_results if unique else header.max_num
        # Not `store.query`, which dispatches first: this runs in a thread, and listeners belong to the event loop.
        records = self._store.reader.query(
            header.topic,
            header.key or "",
            most,
            header.begin_timestamp,
            header.end_timestamp,
            tag=header.index_type == _TAG,
        )
        if not records:
            nothing = QueryMessageAnswer(index_last_update_timestamp=0, index_last_update_phyoffset=0)
            raise QueryNotFound("can not find message, maybe time range not correct", nothing.to_fields())
        index = self._store.index
        answer = QueryMessageAnswer(
            index_last_update_timestamp=index.end_timestamp if index is not None else 0,
            index_last_update_phyoffset=index.end_physical_offset if index is not None else 0,
        )
        return Answered(answer, b"".join(records))

    def view(self, _: Peer, header: ViewMessageById, __: Body) -> bytes:
        """The message at a physical offset."""
        record = self._store.shown_at(header.offset)
        if record is None:
            raise SystemFailure(f"can not find message by the offset, {header.offset}")
        if header.topic and header.topic.strip() and not _is_of_topic(decode_record(record), header.topic):
            raise NoPermission("The topic does not match the message")
        # A copy, made here: it may have to come from the disk, and this is not the event loop's thread.
        return bytes(record)

    def entries(self, _: Peer, header: QueryConsumeQueue, __: Body) -> Answered:
        """Entries from an index on; where there is no entry the answer is a success with a remark and no body."""
        queue = self._store.queues.get(header.topic, header.queue_id)
        entries = _entries(queue, header) if isinstance(queue, ConsumeQueue) else []
        if queue is None or not entries:
            missing = f"Index {header.index} of {header.queue_id}@{header.topic} is not exist!"
            return Answered(remark=missing)
        group, subscription, filter_data = header.consumer_group, None, None
        if group is not None:
            subscription = self._consumers.find_subscription(group, header.topic)
            filter_data = "null" if subscription is not None else f"{group}@{header.topic} is not online!"
        found = QueueEntries(
            min_index=queue.min_offset,
            max_index=queue.max_offset,
            # RocketMQ: `eval` stays false for entries without an extended part, whatever the subscription is.
            entries=tuple(QueueEntryInfo(entry.physical_offset, entry.size, entry.tags_code) for entry in entries),
            subscription=subscription,
            filter_data=filter_data,
        )
        return Answered(body=found, remark=UNSET_REMARK)


def _entries(queue: ConsumeQueue, header: QueryConsumeQueue) -> list[QueueEntry]:
    """From the wanted one on; none at all when that one is not there."""
    if queue.entry(header.index) is None:
        return []
    last = min(header.index + min(header.count, MOST_ENTRIES), queue.max_offset)
    found = (queue.entry(number) for number in range(header.index, last))
    return [entry for entry in found if entry is not None]


def _is_of_topic(record: StoredMessage, topic: str) -> bool:
    """As RocketMQ since 5.5: a message that waits belongs to the topic to which it will go, and to no other."""
    if topic.startswith(LMQ_PREFIX):
        return topic in record.properties.get(INNER_MULTI_DISPATCH, "").split(",")
    if record.topic in _PARKING_TOPICS:
        return record.properties.get(REAL_TOPIC) == topic
    return record.topic == topic
