"""Sending: one message, a batch, a reply, a message that could not be consumed."""

from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.java_order import FROM_SINGLE_FIELD
from skyrocket.protocol.requests.header import Header, Int, Long, Request, answer_with, request, wire


@answer_with(ext_capacity=FROM_SINGLE_FIELD)
class SendMessageAnswer(Header):
    """With codes 0, 10, 11 and 12; refusals by the send handler carry only region and trace switch."""

    region: str | None = wire("MSG_REGION", default=None)
    trace_on: str | None = wire("TRACE_ON", default=None)
    msg_id: str  # offset ids, joined by commas for a batch
    queue_id: Int
    queue_offset: Long
    transaction_id: str | None = None
    batch_unique_id: str | None = wire("batchUniqId", default=None)
    recall_handle: str | None = None
    replica_count: Int | None = None  # ours: brokers of the set that are known to have it, if senders wait for slaves


@request(RequestCode.SEND_MESSAGE, answer=SendMessageAnswer)
class SendMessage(Request[SendMessageAnswer]):
    """A message to store; all requests that store messages are this one with other wire names."""

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
    batch: bool = False  # the body is a batch, whatever the code
    max_reconsume_times: Int | None = None
    broker_name: str | None = wire("bname", default=None)


_LETTERS = {
    "producer_group": "a",
    "topic": "b",
    "default_topic": "c",
    "default_topic_queue_nums": "d",
    "queue_id": "e",
    "sys_flag": "f",
    "born_timestamp": "g",
    "flag": "h",
    "properties": "i",
    "reconsume_times": "j",
    "unit_mode": "k",
    "max_reconsume_times": "l",
    "batch": "m",
    "broker_name": "n",
}


@request(RequestCode.SEND_MESSAGE_V2, answer=SendMessageAnswer, names=_LETTERS, strict_numbers=True)
class SendMessageV2(SendMessage):
    """SendMessage with field names of one letter: what Java clients send."""


@request(RequestCode.SEND_BATCH_MESSAGE, answer=SendMessageAnswer, names=_LETTERS, strict_numbers=True)
class SendBatchMessage(SendMessage):
    """Messages of one topic and queue in one body."""


@request(RequestCode.SEND_REPLY_MESSAGE, answer=SendMessageAnswer)
class SendReplyMessage(SendMessage):
    """The reply to a message that asked for one."""


@request(RequestCode.SEND_REPLY_MESSAGE_V2, answer=SendMessageAnswer, names=_LETTERS, strict_numbers=True)
class SendReplyMessageV2(SendMessage):
    """SendMessage with field names of one letter."""


@request(RequestCode.CONSUMER_SEND_MSG_BACK)
class ConsumerSendMsgBack(Request[Header]):
    """A message that a consumer failed on; delay level 0 lets the broker choose, < 0 means the dead-letter topic."""

    broker_name: str | None = wire("bname", default=None)
    offset: Long  # physical
    group: str
    delay_level: Int
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int | None = None


@answer_with(ext_capacity=FROM_SINGLE_FIELD)
class RecallMessageAnswer(Header):
    """The unique key of the message that will not be delivered."""

    region: str | None = wire("MSG_REGION", default=None)
    msg_id: str | None = None


@request(RequestCode.RECALL_MESSAGE, answer=RecallMessageAnswer)
class RecallMessage(Request[RecallMessageAnswer]):
    """Take back a message that waits for its time."""

    topic: str
    recall_handle: str
    producer_group: str | None = None
    broker_name: str | None = wire("bname", default=None)
