"""Objects as RocketMQ's tools print them: what Java's toString makes of configurations, messages and times."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from skyrocket.cli.mqadmin.options import number_of
from skyrocket.client import MessageQueue, MessageTrack, ReceivedMessage, SendReceipt
from skyrocket.errors import ConfigError
from skyrocket.format.sys_flag import COMPRESSED
from skyrocket.model.permission import permission_text
from skyrocket.model.subscription_group import GroupRetryPolicy, SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.running_info import DirectConsumption


def front(text: str | None, size: int) -> str:
    """UtilAll.frontStringAtLeast: not more than `size` characters."""
    return "null" if text is None else text[:size]


def time_ms(ms: int) -> str:
    """`2026-11-16 01:50:57,034`, local."""
    return _local(ms, f"%Y-%m-%d %H:%M:%S,{ms % 1000:03d}")


def time_s(ms: int) -> str:
    """`2026-11-16 01:50:57`, local."""
    return _local(ms, "%Y-%m-%d %H:%M:%S")


def time_digits(ms: int) -> str:
    """`20261116015057034`, local."""
    return _local(ms, f"%Y%m%d%H%M%S{ms % 1000:03d}")


def _local(ms: int, form: str) -> str:
    """The bare number where no calendar has such a time: clients may say any."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).astimezone().strftime(form)
    except (OverflowError, ValueError):
        return str(ms)


def moment_ms(text: str) -> int:
    """Milliseconds, or `2026-11-16#01:50:57:034`, local; raises ConfigError."""
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return number_of("time", text)
    moment, _, ms = text.rpartition(":")
    try:
        if re.fullmatch(r"[0-9]{1,3}", ms):
            return round(datetime.strptime(moment, "%Y-%m-%d#%H:%M:%S").astimezone().timestamp() * 1000) + int(ms)
    except (OverflowError, ValueError):
        pass
    raise ConfigError(f"{text!r} is not a time: write milliseconds since 1970, or 2026-01-31#12:00:00:000")


def charset_of(name: str) -> str:
    """Of texts that Python reads; raises ConfigError."""
    try:
        b"text".decode(name, "replace")
    except (LookupError, ValueError):
        raise ConfigError(f"charset {name!r} is not known; UTF-8 is") from None
    return name


def flag(value: bool | None) -> str:
    """true, false, null."""
    return "null" if value is None else "true" if value else "false"


def java_map(pairs: Mapping[str, Any]) -> str:
    """`{a=1, b=2}`."""
    return "{" + ", ".join(f"{key}={value}" for key, value in pairs.items()) + "}"


def java_list(values: Iterable[Any] | None) -> str:
    """`[a, b]`, or null."""
    return "null" if values is None else "[" + ", ".join(map(str, values)) + "]"


def topic_text(config: TopicConfig, attributes: Mapping[str, str] | None = None) -> str:
    """TopicConfig.toString."""
    shown = config.attributes if attributes is None else attributes
    return (
        f"TopicConfig [topicName={config.name}, readQueueNums={config.read_queues}, "
        f"writeQueueNums={config.write_queues}, perm={permission_text(config.permission)}, "
        f"topicFilterType={config.filter_type}, topicSysFlag={config.sys_flag}, order={flag(config.ordered)}, "
        f"attributes={java_map(shown)}]"
    )


def group_text(group: SubscriptionGroup, attributes: Mapping[str, str] | None = None) -> str:
    """SubscriptionGroupConfig.toString."""
    return "SubscriptionGroupConfig{" + ", ".join(f"{k}={v}" for k, v in group_fields(group, attributes)) + "}"


def group_fields(group: SubscriptionGroup, attributes: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Its fields in Java's order."""
    shown = group.attributes if attributes is None else attributes
    return [
        ("groupName", group.name),
        ("consumeEnable", flag(group.may_consume)),
        ("consumeFromMinEnable", flag(group.may_consume_from_min)),
        ("consumeBroadcastEnable", flag(group.may_consume_broadcast)),
        ("consumeMessageOrderly", flag(group.consumes_orderly)),
        ("retryQueueNums", str(group.retry_queues)),
        ("retryMaxTimes", str(group.retry_max_times)),
        ("groupRetryPolicy", policy_text(group.retry_policy)),
        ("brokerId", str(group.broker_id)),
        ("whichBrokerWhenConsumeSlowly", str(group.broker_id_when_slow)),
        ("notifyConsumerIdsChangedEnable", flag(group.notifies_of_members)),
        ("groupSysFlag", str(group.sys_flag)),
        ("consumeTimeoutMinute", str(group.consume_timeout_minutes)),
        ("subscriptionDataSet", "null" if group.subscriptions is None else java_list(group.subscriptions)),
        ("attributes", java_map(shown)),
    ]


def policy_text(policy: GroupRetryPolicy) -> str:
    """GroupRetryPolicy.toString."""
    exponential, customized = "null", "null"
    if policy.exponential is not None:
        each = policy.exponential
        exponential = (
            f"ExponentialRetryPolicy{{initial={each.initial_ms}, max={each.max_ms}, multiplier={each.multiplier}}}"
        )
    if policy.customized is not None:
        customized = f"CustomizedRetryPolicy{{next={java_list(policy.customized.delays_ms)}}}"
    return (
        f"GroupRetryPolicy{{type={policy.kind}, exponentialRetryPolicy={exponential}, "
        f"customizedRetryPolicy={customized}}}"
    )


def queue_text(queue: MessageQueue) -> str:
    """MessageQueue.toString."""
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"


def shown_flag(message: ReceivedMessage) -> int:
    """RocketMQ: without the mark of a packed body, which its clients take off when they unpack it."""
    return message.sys_flag & ~COMPRESSED


def message_text(message: ReceivedMessage, *, with_body: bool = True) -> str:
    """MessageExt.toString; the bytes of the body as Java prints them, signed, or that it was not read."""
    numbers = ", ".join(str(byte - 256 if byte > 127 else byte) for byte in message.body)
    body = f"[{numbers}]" if with_body else "null"
    transaction = message.properties.get("__transactionId__")
    return (
        f"MessageExt [brokerName={message.broker_name or 'null'}, queueId={message.queue_id}, "
        f"storeSize={message.size}, queueOffset={message.queue_offset}, sysFlag={shown_flag(message)}, "
        f"bornTimestamp={message.born_timestamp}, bornHost=/{message.born_host}, "
        f"storeTimestamp={message.store_timestamp}, storeHost=/{message.store_host}, "
        f"msgId={message.offset_message_id}, commitLogOffset={message.physical_offset}, bodyCRC={message.body_crc}, "
        f"reconsumeTimes={message.reconsume_times}, preparedTransactionOffset={message.prepared_transaction_offset}, "
        f"toString()=Message{{topic='{message.topic}', flag={message.flag}, "
        f"properties={java_map(message.properties)}, body={body}, transactionId='{transaction or 'null'}'}}]"
    )


def receipt_text(receipt: SendReceipt) -> str:
    """SendResult.toString."""
    return (
        f"SendResult [sendStatus={receipt.status.name}, msgId={receipt.message_id}, "
        f"offsetMsgId={receipt.offset_message_id}, messageQueue={queue_text(receipt.queue)}, "
        f"queueOffset={receipt.queue_offset}, recallHandle={receipt.recall_handle or 'null'}]"
    )


def track_text(track: MessageTrack) -> str:
    """MessageTrack.toString."""
    return (
        f"MessageTrack [consumerGroup={track.group}, trackType={track.kind.value}, "
        f"exceptionDesc={track.reason or 'null'}]"
    )


def consumption_text(result: DirectConsumption) -> str:
    """ConsumeMessageDirectlyResult.toString."""
    return (
        f"ConsumeMessageDirectlyResult [order={flag(result.is_orderly)}, autoCommit={flag(result.auto_commit)}, "
        f"consumeResult={result.result}, remark={result.remark or 'null'}, spentTimeMills={result.spent_ms}]"
    )
