"""What a broker knows about a consumer group: what it may do, and how often and when it is given a message again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.fastjson.bean import SINCE_5, one_of
from skyrocket.model.delay_level import DEFAULT_DELAY_LEVELS, parse_delay_levels

CUSTOMIZED = "CUSTOMIZED"
EXPONENTIAL = "EXPONENTIAL"
MASTER_BROKER_ID = 0

_STANDARD_DELAYS = parse_delay_levels(DEFAULT_DELAY_LEVELS)
_LARGEST_EXPONENT = 32


@dataclass(frozen=True, slots=True)
class CustomizedRetry:
    """A list of delays; the last one serves for all further attempts."""

    delays_ms: Annotated[tuple[int, ...], "next"] = _STANDARD_DELAYS
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def next_delay_ms(self, reconsume_times: int) -> int:
        """How long a message waits before its next attempt, after this many failed ones."""
        # RocketMQ: the first two levels (1 s, 5 s) are left out.
        delays_ms = self.delays_ms or _STANDARD_DELAYS
        return delays_ms[min(max(reconsume_times, 0) + 2, len(delays_ms) - 1)]


@dataclass(frozen=True, slots=True)
class ExponentialRetry:
    """Delays that grow by a factor up to a limit."""

    initial_ms: Annotated[int, "initial"] = 5000
    max_ms: Annotated[int, "max"] = 7_200_000
    multiplier: int = 2
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def next_delay_ms(self, reconsume_times: int) -> int:
        """How long a message waits before its next attempt, after this many failed ones."""
        exponent = min(max(reconsume_times, 0), _LARGEST_EXPONENT)
        factor: int = self.multiplier**exponent
        return min(self.max_ms, self.initial_ms * factor)


@dataclass(frozen=True, slots=True)
class GroupRetryPolicy:
    """Which of the two kinds counts; either may be left out and then has its defaults."""

    kind: Annotated[str, "type", one_of(CUSTOMIZED, EXPONENTIAL)] = CUSTOMIZED
    customized: Annotated[CustomizedRetry | None, "customizedRetryPolicy"] = None
    exponential: Annotated[ExponentialRetry | None, "exponentialRetryPolicy"] = None
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def next_delay_ms(self, reconsume_times: int) -> int:
        """How long a message waits before its next attempt, after this many failed ones."""
        if self.kind == EXPONENTIAL:
            return (self.exponential or ExponentialRetry()).next_delay_ms(reconsume_times)
        return (self.customized or CustomizedRetry()).next_delay_ms(reconsume_times)


@dataclass(frozen=True, slots=True)
class FixedSubscription:
    """A subscription that an operator gave to a group; clients do not need to announce it."""

    topic: str
    expression_type: str = "TAG"
    expression: str = "*"
    version: int = 0
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class SubscriptionGroup:
    """One consumer group on one broker."""

    name: Annotated[str, "groupName"]
    may_consume: Annotated[bool, "consumeEnable"] = True
    may_consume_from_min: Annotated[bool, "consumeFromMinEnable"] = True
    may_consume_broadcast: Annotated[bool, "consumeBroadcastEnable"] = True
    consumes_orderly: Annotated[bool, "consumeMessageOrderly", SINCE_5] = False
    retry_queues: Annotated[int, "retryQueueNums"] = 1
    retry_max_times: int = 16
    retry_policy: Annotated[GroupRetryPolicy, "groupRetryPolicy", SINCE_5] = field(default_factory=GroupRetryPolicy)
    broker_id: int = MASTER_BROKER_ID
    broker_id_when_slow: Annotated[int, "whichBrokerWhenConsumeSlowly"] = 1
    # Tell the consumers when one of them comes or goes.
    notifies_of_members: Annotated[bool, "notifyConsumerIdsChangedEnable"] = True
    sys_flag: Annotated[int, "groupSysFlag", SINCE_5] = 0
    consume_timeout_minutes: Annotated[int, "consumeTimeoutMinute", SINCE_5] = 15
    subscriptions: Annotated[tuple[FixedSubscription, ...] | None, "subscriptionDataSet", SINCE_5] = None
    attributes: Annotated[Mapping[str, str], SINCE_5] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)
