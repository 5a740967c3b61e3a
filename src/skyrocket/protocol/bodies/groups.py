"""Consumer groups of a broker as tables, lists and single ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from skyrocket.fastjson.bean import FLAG, INTEGER, TEXT, TEXT_KEY, Field, bean, map_of, one_of, tuple_of
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
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody
from skyrocket.protocol.bodies.topics import DATA_VERSION_KIND

_EXPONENTIAL_RETRY = bean(
    ExponentialRetry,
    Field("initial", "initial_ms", INTEGER),
    Field("max", "max_ms", INTEGER),
    Field("multiplier", "multiplier", INTEGER),
)
_RETRY_POLICY = bean(
    GroupRetryPolicy,
    Field("customizedRetryPolicy", "customized", bean(CustomizedRetry, Field("next", "delays_ms", tuple_of(INTEGER)))),
    Field("exponentialRetryPolicy", "exponential", _EXPONENTIAL_RETRY),
    Field("type", "kind", one_of(CUSTOMIZED, EXPONENTIAL)),
)
_FIXED_SUBSCRIPTION = bean(
    FixedSubscription,
    Field("expression", "expression", TEXT),
    Field("expressionType", "expression_type", TEXT),
    Field("topic", "topic", TEXT),
    Field("version", "version", INTEGER),
)
SUBSCRIPTION_GROUP_KIND = bean(
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
SUBSCRIPTION_GROUP = JsonBody(SUBSCRIPTION_GROUP_KIND)


@dataclass(frozen=True, slots=True)
class GroupTable(BodyBase):
    """Groups by name; `forbidden` is group → topic → bitmap of operations, and never left out."""

    data_version: DataVersion = field(default_factory=DataVersion)
    groups: Mapping[str, SubscriptionGroup] = field(default_factory=dict)
    forbidden: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


GROUP_TABLE = JsonBody(
    bean(
        GroupTable,
        Field("dataVersion", "data_version", DATA_VERSION_KIND),
        Field("forbiddenTable", "forbidden", map_of(TEXT_KEY, map_of(TEXT_KEY, INTEGER)), since_5=True),
        Field("subscriptionGroupTable", "groups", map_of(TEXT_KEY, SUBSCRIPTION_GROUP_KIND)),
    )
)


@dataclass(frozen=True, slots=True)
class GroupConfigList(BodyBase):
    """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST."""

    groups: tuple[SubscriptionGroup, ...] = ()


GROUP_CONFIG_LIST = JsonBody(
    bean(GroupConfigList, Field("groupConfigList", "groups", tuple_of(SUBSCRIPTION_GROUP_KIND)))
)


@dataclass(frozen=True, slots=True)
class GroupList(BodyBase):
    """QUERY_TOPIC_CONSUME_BY_WHO: names of groups."""

    groups: tuple[str, ...] = ()


GROUP_LIST = JsonBody(bean(GroupList, Field("groupList", "groups", tuple_of(TEXT))))


@dataclass(frozen=True, slots=True)
class GroupForbidden(BodyBase):
    """UPDATE_AND_GET_GROUP_FORBIDDEN: may the group read the topic?"""

    group: str = ""
    topic: str = ""
    readable: bool | None = None


GROUP_FORBIDDEN = JsonBody(
    bean(
        GroupForbidden,
        Field("group", "group", TEXT),
        Field("readable", "readable", FLAG),
        Field("topic", "topic", TEXT),
    )
)
