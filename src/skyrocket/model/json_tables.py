"""How topics, groups and their versions look in JSON: the same in a broker's files and on the wire."""

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
from skyrocket.model.topic_config import MULTI_TAG, SINGLE_TAG, TopicConfig

DATA_VERSION = bean(
    DataVersion,
    Field("counter", "counter", INTEGER),
    Field("stateVersion", "state_version", INTEGER, since_5=True),
    Field("timestamp", "timestamp", INTEGER),
)

TOPIC_CONFIG = bean(
    TopicConfig,
    Field("attributes", "attributes", map_of(TEXT_KEY, TEXT), since_5=True),
    Field("order", "ordered", FLAG),
    Field("perm", "permission", INTEGER),
    Field("readQueueNums", "read_queues", INTEGER),
    Field("topicFilterType", "filter_type", one_of(SINGLE_TAG, MULTI_TAG)),
    Field("topicName", "name", TEXT),
    Field("topicSysFlag", "sys_flag", INTEGER),
    Field("writeQueueNums", "write_queues", INTEGER),
)

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
