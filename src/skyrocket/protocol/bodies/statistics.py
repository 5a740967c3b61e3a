"""How far queues and groups are, and how fast."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from skyrocket.model.data_version import DataVersion
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.json_body import BodyBase, body
from skyrocket.protocol.bodies.kinds import Queue


@body
class TopicOffset(BodyBase):
    """One queue of a topic."""

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0


@body
class TopicStats(BodyBase):
    """GET_TOPIC_STATS_INFO."""

    offsets: Annotated[Mapping[Queue, TopicOffset], "offsetTable"] = field(default_factory=dict)
    put_tps: Annotated[float | None, "topicPutTps"] = None


@body
class OffsetLag(BodyBase):
    """One queue of a group; 4.9 does not tell the pull offset."""

    broker_offset: int = 0
    consumer_offset: int = 0
    pull_offset: int | None = None
    last_timestamp: int = 0


@body
class ConsumeStats(BodyBase):
    """GET_CONSUME_STATS."""

    offsets: Annotated[Mapping[Queue, OffsetLag], "offsetTable"] = field(default_factory=dict)
    consume_tps: float = 0.0


@body
class BrokerConsumeStats(BodyBase):
    """GET_BROKER_CONSUME_STATS: one map per group, each with the group's topics."""

    groups: Annotated[tuple[Mapping[str, list[ConsumeStats]], ...], "consumeStatsList"] = ()
    broker_address: Annotated[str | None, "brokerAddr"] = None
    total_lag: Annotated[int, "totalDiff"] = 0
    total_inflight_lag: Annotated[int, "totalInflightDiff"] = 0


@body
class StatsItem(BodyBase):
    """Sum and rates of one span."""

    sum: int = 0
    tps: float = 0.0
    average: Annotated[float, "avgpt"] = 0.0


@body
class BrokerStatsData(BodyBase):
    """VIEW_BROKER_STATS_DATA."""

    minute: Annotated[StatsItem, "statsMinute"] = field(default_factory=StatsItem)
    hour: Annotated[StatsItem, "statsHour"] = field(default_factory=StatsItem)
    day: Annotated[StatsItem, "statsDay"] = field(default_factory=StatsItem)


@body
class QueueTimeSpan(BodyBase):
    """Times in ms of one queue: its first and last message, and the one consumed next; texts are for people."""

    queue: Annotated[Queue, "messageQueue"] = MessageQueue("", "", 0)
    min_timestamp: Annotated[int, "minTimeStamp"] = 0
    max_timestamp: Annotated[int, "maxTimeStamp"] = 0
    consume_timestamp: Annotated[int, "consumeTimeStamp"] = 0
    delay_ms: Annotated[int, "delayTime"] = 0


@body
class ConsumeTimeSpans(BodyBase):
    """QUERY_CONSUME_TIME_SPAN."""

    spans: Annotated[tuple[QueueTimeSpan, ...], "consumeTimeSpanSet"] = ()


@body
class TimerCount(BodyBase):
    """Messages of a topic that wait in the timer."""

    count: int = 0
    timestamp: Annotated[int, "timeStamp"] = 0


@body
class TimerMetrics(BodyBase):
    """GET_TIMER_METRICS."""

    data_version: DataVersion = field(default_factory=DataVersion)
    counts: Annotated[Mapping[str, TimerCount], "timingCount"] = field(default_factory=dict)
