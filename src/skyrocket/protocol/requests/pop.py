"""Popping: messages without a queue of one's own, acknowledged one by one."""

from skyrocket.protocol.bodies.assignment import Assignment, AssignmentQuery, RequestMode, RequestModeTable
from skyrocket.protocol.bodies.batch_ack import BatchAck
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Int, Long, Request, answer, request, wire


@answer
class PopMessageAnswer(Header):
    """The four numbers are on every answer, 0 on refusals."""

    pop_time: Long
    invisible_time: Long
    revive_qid: Int
    rest_num: Long
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


@request(RequestCode.POP_MESSAGE, answer=PopMessageAnswer)
class PopMessage(Request[PopMessageAnswer]):
    """Messages of any queue (-1) or one, hidden from others for a while."""

    consumer_group: str
    topic: str
    queue_id: Int
    max_msg_nums: Int
    poll_time: Long
    invisible_time: Long
    born_time: Long = 0
    init_mode: Int = 0
    exp_type: str | None = None
    exp: str | None = None
    order: bool | None = None
    attempt_id: str | None = None
    broker_name: str | None = wire("bname", default=None)


@request(RequestCode.ACK_MESSAGE)
class AckMessage(Request[Header]):
    """A popped message is done."""

    consumer_group: str
    topic: str
    queue_id: Int
    extra_info: str
    offset: Long
    broker_name: str | None = wire("bname", default=None)


@request(RequestCode.BATCH_ACK_MESSAGE, body=BatchAck, optional_body=True)
class BatchAckMessage(Request[Header]):
    """Many are done."""


@answer
class ChangeInvisibleTimeAnswer(Header):
    """From which the client makes its new receipt handle."""

    pop_time: Long
    invisible_time: Long
    revive_qid: Int


@request(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, answer=ChangeInvisibleTimeAnswer)
class ChangeInvisibleTime(Request[ChangeInvisibleTimeAnswer]):
    """Hide a popped message longer or shorter."""

    consumer_group: str
    topic: str
    queue_id: Int
    extra_info: str
    offset: Long
    invisible_time: Long
    broker_name: str | None = wire("bname", default=None)


@request(RequestCode.PEEK_MESSAGE, answer=PopMessageAnswer)
class PeekMessage(Request[PopMessageAnswer]):
    """Look without taking."""

    consumer_group: str
    topic: str
    queue_id: Int
    max_msg_nums: Int


@answer
class NotificationAnswer(Header):
    """Whether there is something to pop."""

    has_msg: bool
    polling_full: bool


@request(RequestCode.NOTIFICATION, answer=NotificationAnswer)
class Notification(Request[NotificationAnswer]):
    """Tell me when there is something to pop."""

    consumer_group: str
    topic: str
    queue_id: Int
    poll_time: Long
    born_time: Long
    order: bool | None = None
    attempt_id: str | None = None
    broker_name: str | None = wire("bname", default=None)


@answer
class PollingInfoAnswer(Header):
    """How many requests wait."""

    polling_num: Int


@request(RequestCode.POLLING_INFO, answer=PollingInfoAnswer)
class PollingInfo(Request[PollingInfoAnswer]):
    """How many pops wait at a queue?"""

    consumer_group: str
    topic: str
    queue_id: Int


@request(RequestCode.POP_ROLLBACK)
class PopRollback(Request[Header]):
    """Move pop records from the KV store to files."""


@request(RequestCode.QUERY_ASSIGNMENT, body=AssignmentQuery, answer_body=Assignment)
class QueryAssignment(Request[Header]):
    """Which queues are mine, when the broker shares them out?"""


@request(RequestCode.SET_MESSAGE_REQUEST_MODE, body=RequestMode)
class SetMessageRequestMode(Request[Header]):
    """Let a group pull or pop a topic."""


@request(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, answer_body=RequestModeTable)
class GetAllMessageRequestMode(Request[Header]):
    """All such settings, for a slave."""
