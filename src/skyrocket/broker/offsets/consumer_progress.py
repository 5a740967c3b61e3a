"""Offsets: how far a group has come, where a queue begins and ends, what was stored at a time."""

from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.subscription_groups import SubscriptionGroupTable
from skyrocket.broker.state.topics import TopicTable
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
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
from skyrocket.remoting.admission import RequestClass
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import Boundary


class OffsetProcessor:
    """Commits and queries."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicTable,
        groups: SubscriptionGroupTable,
        offsets: ConsumerOffsetTable,
    ) -> None:
        self._store = store
        self._topics = topics
        self._groups = groups
        self._offsets = offsets

    def register(self, router: Router, request_class: RequestClass) -> None:
        """Answer these requests."""
        router.register(RequestCode.UPDATE_CONSUMER_OFFSET, self.update, request_class)
        router.register(RequestCode.QUERY_CONSUMER_OFFSET, self.query, request_class)
        router.register(RequestCode.GET_MAX_OFFSET, self.max_offset, request_class)
        router.register(RequestCode.GET_MIN_OFFSET, self.min_offset, request_class)
        router.register(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, self.search, request_class)
        router.register(RequestCode.GET_EARLIEST_MSG_STORETIME, self.earliest_time, request_class)

    def update(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """UPDATE_CONSUMER_OFFSET."""
        header = UpdateConsumerOffset.from_fields(request.ext_fields)
        try:
            self._groups.existing(header.consumer_group, f"Group {header.consumer_group} not exist!")
            self._topics.existing(header.topic, f"Topic {header.topic} not exist!")
            taken = self._offsets.commit(header.consumer_group, header.topic, header.queue_id, header.commit_offset)
        except RequestError as error:
            error.ext_fields = {}
            raise
        return request.answer(ResponseCode.SUCCESS, None if taken else "Offset has been previously reset", {})

    def query(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """QUERY_CONSUMER_OFFSET; a new group begins at 0 while nothing of the queue was deleted."""
        header = QueryConsumerOffset.from_fields(request.ext_fields)
        offset = self._offsets.committed(header.consumer_group, header.topic, header.queue_id)
        if offset is None:
            offset = self._first_offset(header)
        return _offset(request, offset)

    def _first_offset(self, header: QueryConsumerOffset) -> int:
        if header.set_zero_if_not_found is False:
            raise QueryNotFound("Not found, do not set to zero, maybe this group boot first", {})
        # RocketMQ 5 says "not found" for an empty queue, and a message that comes in between is passed over; 4.9: 0.
        if self._store.min_offset(header.topic, header.queue_id) <= 0:
            first = self._store.get(header.topic, header.queue_id, 0, 1)
            if not first.suggest_slave:  # the same distance from the log's end that means: on disk
                return 0
        raise QueryNotFound("Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first", {})

    def max_offset(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_MAX_OFFSET; not committed counts what is in the log but not yet in the queue."""
        header = GetMaxOffset.from_fields(request.ext_fields)
        queue = self._store.queues.get(header.topic, header.queue_id)
        if queue is None:
            return _offset(request, 0)
        return _offset(request, queue.max_offset if header.committed else queue.next_offset)

    def min_offset(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_MIN_OFFSET."""
        header = GetMinOffset.from_fields(request.ext_fields)
        answer = _offset(request, max(self._store.min_offset(header.topic, header.queue_id), 0))
        answer.remark = ""  # RocketMQ 5: here, and only here
        return answer

    def search(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """SEARCH_OFFSET_BY_TIMESTAMP."""
        header = SearchOffsetByTimestamp.from_fields(request.ext_fields)
        boundary = Boundary.UPPER if header.boundary_type is BoundaryType.UPPER else Boundary.LOWER
        offset = self._store.offset_by_time(header.topic, header.queue_id, header.timestamp, boundary)
        return _offset(request, max(offset, 0))

    def earliest_time(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_EARLIEST_MSG_STORETIME."""
        header = GetEarliestMsgStoreTime.from_fields(request.ext_fields)
        timestamp = self._store.earliest_time(header.topic, header.queue_id)
        return request.answer(ResponseCode.SUCCESS, None, TimestampAnswer(timestamp=timestamp).to_fields())


def _offset(request: RemotingCommand, offset: int) -> RemotingCommand:
    return request.answer(ResponseCode.SUCCESS, None, OffsetAnswer(offset=offset).to_fields())
