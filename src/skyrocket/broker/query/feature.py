"""Queries: messages by key, by unique key and by id, and what stands in a queue."""

from collections.abc import Mapping
from typing import Final

from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.query.queue_entries import QueueEntryProcessor
from skyrocket.format.record import decode_record
from skyrocket.model.message import StoredMessage
from skyrocket.model.property_names import INNER_MULTI_DISPATCH, REAL_TOPIC
from skyrocket.model.topic import GIVEN_UP_TOPIC, HALF_TOPIC, LMQ_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import NoPermission, QueryNotFound, SystemFailure
from skyrocket.protocol.requests.query import QueryMessage, QueryMessageAnswer, ViewMessageById
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Answered, Handlers, serve

_TAG: Final = "T"
_UNIQUE: Final = "U"
_PARKING_TOPICS: Final = frozenset({SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC, GIVEN_UP_TOPIC})


class QueryFeature(Feature):
    """Answers with records as they are in the log.

    Searches run in threads of their own: a slow disk must not hold up the event loop.
    """

    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._entries = QueueEntryProcessor(parts.store, parts.tables.consumers)
        self._workers = parts.workers

    def handlers(self) -> Handlers:
        return (
            serve(QueryMessage, self.query, in_thread=True),
            serve(ViewMessageById, self.view, in_thread=True),
            *self._entries.handlers(),
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
        record = self._store.by_physical_offset(header.offset)
        if record is None:
            raise SystemFailure(f"can not find message by the offset, {header.offset}")
        if header.topic and header.topic.strip() and not _is_of_topic(decode_record(record), header.topic):
            raise NoPermission("The topic does not match the message")
        # A copy, made here: it may have to come from the disk, and this is not the event loop's thread.
        return bytes(record)


def _is_of_topic(record: StoredMessage, topic: str) -> bool:
    """As RocketMQ since 5.5: a message that waits belongs to the topic to which it will go, and to no other."""
    if topic.startswith(LMQ_PREFIX):
        return topic in record.properties.get(INNER_MULTI_DISPATCH, "").split(",")
    if record.topic in _PARKING_TOPICS:
        return record.properties.get(REAL_TOPIC) == topic
    return record.topic == topic
