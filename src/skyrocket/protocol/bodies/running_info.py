"""What a consumer tells about itself, and what became of a message that it was handed directly."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any

from skyrocket.fastjson.bean import enum_of
from skyrocket.protocol.bodies.json_body import BodyBase, body
from skyrocket.protocol.bodies.kinds import Queue
from skyrocket.protocol.bodies.subscription import SubscriptionData


@body
class ProcessQueueInfo(BodyBase):
    """The state of one queue that is pulled."""

    commit_offset: int = 0
    cached_min_offset: Annotated[int, "cachedMsgMinOffset"] = 0
    cached_max_offset: Annotated[int, "cachedMsgMaxOffset"] = 0
    cached_messages: Annotated[int, "cachedMsgCount"] = 0
    cached_mib: Annotated[int, "cachedMsgSizeInMiB"] = 0
    transaction_min_offset: Annotated[int, "transactionMsgMinOffset"] = 0
    transaction_max_offset: Annotated[int, "transactionMsgMaxOffset"] = 0
    transaction_messages: Annotated[int, "transactionMsgCount"] = 0
    is_locked: Annotated[bool, "locked"] = False
    try_unlock_times: int = 0
    last_lock_timestamp: int = 0
    is_dropped: Annotated[bool, "droped"] = False
    last_pull_timestamp: int = 0
    last_consume_timestamp: int = 0


@body
class PopProcessQueueInfo(BodyBase):
    """The state of one queue that is popped."""

    wait_ack_count: int = 0
    is_dropped: Annotated[bool, "droped"] = False
    last_pop_timestamp: int = 0


@body
class ConsumeStatus(BodyBase):
    """Rates of one topic."""

    pull_rt: Annotated[float, "pullRT"] = 0.0
    pull_tps: Annotated[float, "pullTPS"] = 0.0
    consume_rt: Annotated[float, "consumeRT"] = 0.0
    consume_ok_tps: Annotated[float, "consumeOKTPS"] = 0.0
    consume_failed_tps: Annotated[float, "consumeFailedTPS"] = 0.0
    consume_failed_messages: Annotated[int, "consumeFailedMsgs"] = 0


@body
class ConsumerRunningInfo(BodyBase):
    """GET_CONSUMER_RUNNING_INFO."""

    properties: Mapping[str, str] = field(default_factory=dict)
    subscriptions: Annotated[tuple[SubscriptionData, ...], "subscriptionSet"] = ()
    queues: Annotated[Mapping[Queue, ProcessQueueInfo], "mqTable"] = field(default_factory=dict)
    pop_queues: Annotated[Mapping[Queue, PopProcessQueueInfo] | None, "mqPopTable"] = None
    status: Annotated[Mapping[str, ConsumeStatus], "statusTable"] = field(default_factory=dict)
    user_info: Annotated[Mapping[str, Any] | None, "userConsumerInfo"] = None
    jstack: str | None = None


@body
class DirectConsumption(BodyBase):
    """CONSUME_MESSAGE_DIRECTLY: what the listener made of the message."""

    result: Annotated[
        str | None,
        "consumeResult",
        enum_of("CR_SUCCESS", "CR_LATER", "CR_ROLLBACK", "CR_COMMIT", "CR_THROW_EXCEPTION", "CR_RETURN_NULL"),
    ] = None
    is_orderly: Annotated[bool, "order"] = False
    auto_commit: bool = True
    spent_ms: Annotated[int, "spentTimeMills"] = 0
    remark: str | None = None
