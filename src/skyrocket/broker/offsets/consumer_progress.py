"""Offsets: how far a group has come, where a queue begins and ends, what was stored at a time."""

from skyrocket.broker.offsets.commits_apart import CommitsApart
from skyrocket.broker.state.tables import Tables
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import QueryNotFound, RequestError
from skyrocket.protocol.requests.header import BoundaryType
from skyrocket.protocol.requests.offsets import (
    GetEarliestMsgStoreTime,
    GetMaxOffset,
    GetMinOffset,
    OffsetAnswer,
    QueryConsumerOffset,
    SearchOffsetByTimestamp,
    TimestampAnswer,
    UpdateConsumerOffset,
)
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Answered, Handlers, serve
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import Boundary


class OffsetProcessor:
    """Commits and queries."""

    def __init__(self, store: MessageStore, tables: Tables, apart: CommitsApart) -> None:
        self._apart = apart
        self._store = store
        self._topics = tables.topics
        self._groups = tables.groups
        self._offsets = tables.offsets

    def handlers(self) -> Handlers:
        return (
            serve(UpdateConsumerOffset, self.update),
            serve(QueryConsumerOffset, self.query),
            serve(GetMaxOffset, self.max_offset),
            serve(GetMinOffset, self.min_offset),
            serve(SearchOffsetByTimestamp, self.search, in_thread=True),
            serve(GetEarliestMsgStoreTime, self.earliest_time),
        )

    def update(self, _: Peer, header: UpdateConsumerOffset, __: Body) -> Answered:
        """Commit; what a reset has overtaken is not taken, and the client is told."""
        try:
            self._groups.existing(header.consumer_group, f"Group {header.consumer_group} not exist!")
            self._topics.existing(header.topic, f"Topic {header.topic} not exist!")
            taken = self._offsets.commit(header.consumer_group, header.topic, header.queue_id, header.commit_offset)
            self._apart.note(header.consumer_group, header.topic, header.queue_id, header.commit_offset)
        except RequestError as error:
            error.ext_fields = {}
            raise
        return Answered(remark=None if taken else "Offset has been previously reset")

    def query(self, _: Peer, header: QueryConsumerOffset, __: Body) -> OffsetAnswer:
        """How far a group has come; a new group begins at 0 while nothing of the queue was deleted."""
        offset = self._offsets.committed(header.consumer_group, header.topic, header.queue_id)
        return OffsetAnswer(offset=self._first_offset(header) if offset is None else offset)

    def _first_offset(self, header: QueryConsumerOffset) -> int:
        if header.set_zero_if_not_found is False:
            raise QueryNotFound("Not found, do not set to zero, maybe this group boot first", {})
        # RocketMQ 5 says "not found" for an empty queue, and a message that comes in between is passed over; 4.9: 0.
        if self._store.min_offset(header.topic, header.queue_id) <= 0:
            first = self._store.get(header.topic, header.queue_id, 0, 1)
            if not first.suggest_slave:  # the same distance from the log's end that means: on disk
                return 0
        raise QueryNotFound("Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first", {})

    def max_offset(self, _: Peer, header: GetMaxOffset, __: Body) -> OffsetAnswer:
        """Where a queue ends; not committed counts what is in the log but not yet in the queue."""
        queue = self._store.queues.get(header.topic, header.queue_id)
        if queue is None:
            return OffsetAnswer(offset=0)
        return OffsetAnswer(offset=queue.max_offset if header.committed else queue.next_offset)

    def min_offset(self, _: Peer, header: GetMinOffset, __: Body) -> Answered:
        """Where a queue begins."""
        offset = self._store.min_offset(header.topic, header.queue_id)
        topic = self._topics.find(header.topic)
        if offset < 0 and (topic is None or not topic.has_batch_queues):  # RocketMQ: -1 of a batch queue never written
            offset = 0
        return Answered(OffsetAnswer(offset=offset), remark="")  # RocketMQ 5: here, and only here

    def search(self, _: Peer, header: SearchOffsetByTimestamp, __: Body) -> OffsetAnswer:
        """Where a queue was at a time."""
        boundary = Boundary.UPPER if header.boundary_type is BoundaryType.UPPER else Boundary.LOWER
        offset = self._store.offset_by_time(header.topic, header.queue_id, header.timestamp, boundary)
        return OffsetAnswer(offset=max(offset, 0))

    def earliest_time(self, _: Peer, header: GetEarliestMsgStoreTime, __: Body) -> TimestampAnswer:
        """When the oldest message of a queue was stored."""
        return TimestampAnswer(timestamp=self._store.earliest_time(header.topic, header.queue_id))
