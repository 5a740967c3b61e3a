"""What a consumer tells about itself, and what became of a message that it was handed directly."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from skyrocket.fastjson.bean import FLAG, INTEGER, TEXT, TEXT_KEY, Field, bean, map_of, tuple_of
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body
from skyrocket.protocol.bodies.kinds import ANYTHING, MESSAGE_QUEUE_KEY, NUMBER, enum_of
from skyrocket.protocol.bodies.subscription import SUBSCRIPTION_DATA, SubscriptionData


@body
class ProcessQueueInfo(BodyBase):
    """The state of one queue that is pulled."""

    commit_offset: int = 0
    cached_min_offset: int = 0
    cached_max_offset: int = 0
    cached_messages: int = 0
    cached_mib: int = 0
    transaction_min_offset: int = 0
    transaction_max_offset: int = 0
    transaction_messages: int = 0
    is_locked: bool = False
    try_unlock_times: int = 0
    last_lock_timestamp: int = 0
    is_dropped: bool = False
    last_pull_timestamp: int = 0
    last_consume_timestamp: int = 0


@body
class PopProcessQueueInfo(BodyBase):
    """The state of one queue that is popped."""

    wait_ack_count: int = 0
    is_dropped: bool = False
    last_pop_timestamp: int = 0


@body
class ConsumeStatus(BodyBase):
    """Rates of one topic."""

    pull_rt: float = 0.0
    pull_tps: float = 0.0
    consume_rt: float = 0.0
    consume_ok_tps: float = 0.0
    consume_failed_tps: float = 0.0
    consume_failed_messages: int = 0


@body
class ConsumerRunningInfo(BodyBase):
    """GET_CONSUMER_RUNNING_INFO."""

    properties: Mapping[str, str] = field(default_factory=dict)
    subscriptions: tuple[SubscriptionData, ...] = ()
    queues: Mapping[MessageQueue, ProcessQueueInfo] = field(default_factory=dict)
    pop_queues: Mapping[MessageQueue, PopProcessQueueInfo] | None = None
    status: Mapping[str, ConsumeStatus] = field(default_factory=dict)
    user_info: Mapping[str, Any] | None = None
    jstack: str | None = None


_PROCESS_QUEUE = bean(
    ProcessQueueInfo,
    Field("cachedMsgCount", "cached_messages", INTEGER),
    Field("cachedMsgMaxOffset", "cached_max_offset", INTEGER),
    Field("cachedMsgMinOffset", "cached_min_offset", INTEGER),
    Field("cachedMsgSizeInMiB", "cached_mib", INTEGER),
    Field("commitOffset", "commit_offset", INTEGER),
    Field("droped", "is_dropped", FLAG),
    Field("lastConsumeTimestamp", "last_consume_timestamp", INTEGER),
    Field("lastLockTimestamp", "last_lock_timestamp", INTEGER),
    Field("lastPullTimestamp", "last_pull_timestamp", INTEGER),
    Field("locked", "is_locked", FLAG),
    Field("transactionMsgCount", "transaction_messages", INTEGER),
    Field("transactionMsgMaxOffset", "transaction_max_offset", INTEGER),
    Field("transactionMsgMinOffset", "transaction_min_offset", INTEGER),
    Field("tryUnlockTimes", "try_unlock_times", INTEGER),
)
_POP_PROCESS_QUEUE = bean(
    PopProcessQueueInfo,
    Field("droped", "is_dropped", FLAG),
    Field("lastPopTimestamp", "last_pop_timestamp", INTEGER),
    Field("waitAckCount", "wait_ack_count", INTEGER),
)
_CONSUME_STATUS = bean(
    ConsumeStatus,
    Field("consumeFailedMsgs", "consume_failed_messages", INTEGER),
    Field("consumeFailedTPS", "consume_failed_tps", NUMBER),
    Field("consumeOKTPS", "consume_ok_tps", NUMBER),
    Field("consumeRT", "consume_rt", NUMBER),
    Field("pullRT", "pull_rt", NUMBER),
    Field("pullTPS", "pull_tps", NUMBER),
)
CONSUMER_RUNNING_INFO = JsonBody(
    bean(
        ConsumerRunningInfo,
        Field("jstack", "jstack", TEXT),
        Field("mqPopTable", "pop_queues", map_of(MESSAGE_QUEUE_KEY, _POP_PROCESS_QUEUE)),
        Field("mqTable", "queues", map_of(MESSAGE_QUEUE_KEY, _PROCESS_QUEUE)),
        Field("properties", "properties", map_of(TEXT_KEY, TEXT)),
        Field("statusTable", "status", map_of(TEXT_KEY, _CONSUME_STATUS)),
        Field("subscriptionSet", "subscriptions", tuple_of(SUBSCRIPTION_DATA)),
        Field("userConsumerInfo", "user_info", map_of(TEXT_KEY, ANYTHING)),
    )
)


@body
class DirectConsumption(BodyBase):
    """CONSUME_MESSAGE_DIRECTLY: what the listener made of the message."""

    result: str | None = None
    is_orderly: bool = False
    auto_commit: bool = True
    spent_ms: int = 0
    remark: str | None = None


DIRECT_CONSUMPTION = JsonBody(
    bean(
        DirectConsumption,
        Field("autoCommit", "auto_commit", FLAG),
        Field(
            "consumeResult",
            "result",
            enum_of("CR_SUCCESS", "CR_LATER", "CR_ROLLBACK", "CR_COMMIT", "CR_THROW_EXCEPTION", "CR_RETURN_NULL"),
        ),
        Field("order", "is_orderly", FLAG),
        Field("remark", "remark", TEXT),
        Field("spentTimeMills", "spent_ms", INTEGER),
    )
)
