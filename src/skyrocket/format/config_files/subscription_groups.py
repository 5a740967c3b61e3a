"""`subscriptionGroup.json`: every consumer group of the broker, and which operations are forbidden to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import FLAG, INTEGER, TEXT, TEXT_KEY, Field, bean, map_of, one_of, tuple_of
from skyrocket.format.config_files.data_version import DATA_VERSION
from skyrocket.model.data_version import DataVersion
from skyrocket.model.subscription_group import (
    CUSTOMIZED,
    EXPONENTIAL,
    CustomizedRetry,
    ExponentialRetry,
    FixedSubscription,
    GroupRetryPolicy,
    SubscriptionGroup,
)


@dataclass(frozen=True, slots=True)
class SubscriptionGroups:
    """Content of the file; `forbidden` is group → topic → bitmap of operations."""

    data_version: DataVersion = field(default_factory=DataVersion)
    groups: dict[str, SubscriptionGroup] = field(default_factory=dict)
    forbidden: dict[str, dict[str, int]] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_RETRY_POLICY = bean(
    GroupRetryPolicy,
    Field("type", "kind", one_of(CUSTOMIZED, EXPONENTIAL)),
    Field("customizedRetryPolicy", "customized", bean(CustomizedRetry, Field("next", "delays_ms", tuple_of(INTEGER)))),
    Field(
        "exponentialRetryPolicy",
        "exponential",
        bean(
            ExponentialRetry,
            Field("initial", "initial_ms", INTEGER),
            Field("max", "max_ms", INTEGER),
            Field("multiplier", "multiplier", INTEGER),
        ),
    ),
)

_FIXED_SUBSCRIPTION = bean(
    FixedSubscription,
    Field("expression", "expression", TEXT),
    Field("expressionType", "expression_type", TEXT),
    Field("topic", "topic", TEXT),
    Field("version", "version", INTEGER),
)

SUBSCRIPTION_GROUP = bean(
    SubscriptionGroup,
    Field("attributes", "attributes", map_of(TEXT_KEY, TEXT), since_5=True),
    Field("brokerId", "broker_id", INTEGER),
    Field("consumeBroadcastEnable", "may_consume_broadcast", FLAG),
    Field("consumeEnable", "may_consume", FLAG),
    Field("consumeFromMinEnable", "may_consume_from_min", FLAG),
    Field("consumeMessageOrderly", "consumes_orderly", FLAG, since_5=True),
    Field("consumeTimeoutMinute", "consume_timeout_minutes", INTEGER, since_5=True),
    Field("groupName", "name", TEXT),
    Field("groupRetryPolicy", "retry_policy", _RETRY_POLICY, since_5=True),
    Field("groupSysFlag", "sys_flag", INTEGER, since_5=True),
    Field("notifyConsumerIdsChangedEnable", "notifies_of_members", FLAG),
    Field("retryMaxTimes", "retry_max_times", INTEGER),
    Field("retryQueueNums", "retry_queues", INTEGER),
    Field("subscriptionDataSet", "subscriptions", tuple_of(_FIXED_SUBSCRIPTION), since_5=True),
    Field("whichBrokerWhenConsumeSlowly", "broker_id_when_slow", INTEGER),
)

_SUBSCRIPTION_GROUPS = bean(
    SubscriptionGroups,
    Field("dataVersion", "data_version", DATA_VERSION),
    Field("forbiddenTable", "forbidden", map_of(TEXT_KEY, map_of(TEXT_KEY, INTEGER)), since_5=True),
    Field("subscriptionGroupTable", "groups", map_of(TEXT_KEY, SUBSCRIPTION_GROUP)),
)


def decode(data: bytes) -> SubscriptionGroups:
    """The content of the file; raises DataError where it is not."""
    return _SUBSCRIPTION_GROUPS.read(loads(data))


def encode(groups: SubscriptionGroups, dialect: Dialect) -> bytes:
    """The bytes of the file."""
    return dumps(_SUBSCRIPTION_GROUPS.write(groups, dialect), dialect)
