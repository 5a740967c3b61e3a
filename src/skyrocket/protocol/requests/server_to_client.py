"""What a broker asks of its clients, on the connections that they opened."""

from skyrocket.protocol.bodies.offsets import ConsumerStatus, ResetOffsets
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo, DirectConsumption
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Int, Long, Request, request, wire


@request(RequestCode.CHECK_TRANSACTION_STATE)
class CheckTransactionState(Request[Header]):
    """Oneway: what became of this half message? The body is the message, the answer an EndTransaction."""

    topic: str | None = None
    tran_state_table_offset: Long
    commit_log_offset: Long
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    broker_name: str | None = wire("bname", default=None)


@request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)
class NotifyConsumerIdsChanged(Request[Header]):
    """Oneway: members of the group came or went, or `topic` has other queues; RocketMQ has no such field."""

    consumer_group: str
    topic: str | None = None


@request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, body=ResetOffsets)
class ResetConsumerClientOffset(Request[Header]):
    """Oneway: go on at these offsets; C++ clients get the list form of the body."""

    topic: str
    group: str
    timestamp: Long
    is_force: bool = False
    queue_id: Int = -1
    offset: Long | None = None


@request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, answer_body=ConsumerStatus)
class GetConsumerStatusFromClient(Request[Header]):
    """Your offsets of a topic?"""

    topic: str
    group: str
    client_address: str | None = wire("clientAddr", default=None)


@request(RequestCode.GET_CONSUMER_RUNNING_INFO, answer_body=ConsumerRunningInfo)
class GetConsumerRunningInfo(Request[Header]):
    """How are you? Asked by tools of the broker, which passes it on."""

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


@request(RequestCode.CONSUME_MESSAGE_DIRECTLY, answer_body=DirectConsumption)
class ConsumeMessageDirectly(Request[Header]):
    """Consume this message now; tools name it, the broker adds it as body and the last three fields."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None


@request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT)
class PushReplyMessageToClient(Request[Header]):
    """The reply that you wait for; hosts are `ip:port`."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    flag: Int
    properties: str | None = None
    reconsume_times: Int | None = None
    unit_mode: bool = False
    born_host: str | None = None
    store_host: str | None = None
    store_timestamp: Long = 0
