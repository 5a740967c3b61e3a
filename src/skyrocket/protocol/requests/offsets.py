"""Offsets of groups and queues."""

from skyrocket.protocol.bodies.offsets import ConsumerOffsetTable, ConsumerStatus, DelayOffsetTable, ResetOffsets
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import (
    BoundaryType,
    EmptyAnswer,
    Header,
    Int,
    Long,
    Request,
    answer,
    request,
    wire,
)


@answer
class OffsetAnswer(Header):
    """A queue offset."""

    offset: Long


@answer
class TimestampAnswer(Header):
    """A time in ms, or -1."""

    timestamp: Long


@request(RequestCode.QUERY_CONSUMER_OFFSET, answer=OffsetAnswer)
class QueryConsumerOffset(Request[OffsetAnswer]):
    """How far a group has consumed a queue."""

    consumer_group: str
    topic: str
    queue_id: Int
    set_zero_if_not_found: bool | None = None
    broker_name: str | None = wire("bname", default=None)


@request(RequestCode.UPDATE_CONSUMER_OFFSET, answer=EmptyAnswer)
class UpdateConsumerOffset(Request[EmptyAnswer]):
    """A group has consumed a queue up to here; missing numbers are the handler's to refuse (code 29)."""

    broker_name: str | None = wire("bname", default=None)
    consumer_group: str
    topic: str
    queue_id: Int | None = None
    commit_offset: Long | None = None


@request(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, answer=OffsetAnswer)
class SearchOffsetByTimestamp(Request[OffsetAnswer]):
    """The first message that was stored at or after a time."""

    topic: str
    queue_id: Int
    timestamp: Long
    boundary_type: BoundaryType | None = None
    broker_name: str | None = wire("bname", default=None)


@request(RequestCode.GET_MAX_OFFSET, answer=OffsetAnswer)
class GetMaxOffset(Request[OffsetAnswer]):
    """The offset of the next message."""

    topic: str
    queue_id: Int
    committed: bool = True
    broker_name: str | None = wire("bname", default=None)


@request(RequestCode.GET_MIN_OFFSET, answer=OffsetAnswer)
class GetMinOffset(Request[OffsetAnswer]):
    """The offset of the first message that is still there."""

    topic: str
    queue_id: Int
    broker_name: str | None = wire("bname", default=None)


@request(RequestCode.GET_EARLIEST_MSG_STORETIME, answer=TimestampAnswer)
class GetEarliestMsgStoreTime(Request[TimestampAnswer]):
    """When the first message that is still there was stored."""

    topic: str
    queue_id: Int
    broker_name: str | None = wire("bname", default=None)


@request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, answer_body=ResetOffsets)
class ResetOffset(Request[Header]):
    """Move a group to a time (-1: to the end) or to an offset, in one queue or (-1) all."""

    topic: str
    group: str
    timestamp: Long
    is_force: bool
    queue_id: Int = -1
    offset: Long | None = None


@request(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, answer_body=ConsumerStatus)
class GetConsumerStatus(Request[Header]):
    """Offsets as the members of a group see them."""

    topic: str
    group: str
    client_address: str | None = wire("clientAddr", default=None)


@request(RequestCode.CLONE_GROUP_OFFSET)
class CloneGroupOffset(Request[Header]):
    """Give a group the offsets of another one."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False


@request(RequestCode.GET_ALL_CONSUMER_OFFSET, answer_body=ConsumerOffsetTable)
class GetAllConsumerOffset(Request[Header]):
    """All offsets, for a slave."""


@request(RequestCode.GET_ALL_DELAY_OFFSET, answer_body=DelayOffsetTable)
class GetAllDelayOffset(Request[Header]):
    """All offsets of delay levels, for a slave."""
