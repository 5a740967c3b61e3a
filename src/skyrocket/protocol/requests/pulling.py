"""Pulling messages of one queue."""

from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Int, Long, Request, answer, request, wire

COMMIT_OFFSET = 0x1  # bits of a pull's sysFlag
SUSPEND = 0x2
WITH_SUBSCRIPTION = 0x4


@answer
class PullMessageAnswer(Header):
    """With codes 0, 19, 20 and 21; `forbidden_type` says with code 16 who forbids."""

    suggest_which_broker_id: Long
    next_begin_offset: Long
    min_offset: Long
    max_offset: Long
    offset_delta: Long | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None
    forbidden_type: Int | None = None


@request(RequestCode.PULL_MESSAGE, answer=PullMessageAnswer, strict_numbers=True)
class PullMessage(Request[PullMessageAnswer]):
    """Messages from an offset on, at once or when they come; the bits of `sys_flag` say which fields count."""

    consumer_group: str
    topic: str
    queue_id: Int
    queue_offset: Long
    max_msg_nums: Int
    sys_flag: Int
    commit_offset: Long
    suspend_timeout_millis: Long
    subscription: str | None = None
    sub_version: Long = 0
    expression_type: str | None = None
    max_msg_bytes: Int | None = None
    request_source: Int | None = None
    proxy_forward_client_id: str | None = wire("proxyFrowardClientId", default=None)  # RocketMQ: spelled so
    broker_name: str | None = wire("bname", default=None)


@request(RequestCode.LITE_PULL_MESSAGE, answer=PullMessageAnswer, strict_numbers=True)
class LitePullMessage(PullMessage):
    """What lite pull consumers ask with since 5.0."""
