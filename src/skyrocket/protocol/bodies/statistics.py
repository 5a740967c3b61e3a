"""How far queues and groups are, and how fast."""

from collections.abc import Mapping
from dataclasses import field

from skyrocket.fastjson.bean import INTEGER, TEXT, TEXT_KEY, Field, bean, list_of, map_of, tuple_of
from skyrocket.model.data_version import DataVersion
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body
from skyrocket.protocol.bodies.kinds import MESSAGE_QUEUE, MESSAGE_QUEUE_KEY, NUMBER
from skyrocket.protocol.bodies.topics import DATA_VERSION_KIND


@body
class TopicOffset(BodyBase):
    """One queue of a topic."""

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0


@body
class TopicStats(BodyBase):
    """GET_TOPIC_STATS_INFO."""

    offsets: Mapping[MessageQueue, TopicOffset] = field(default_factory=dict)
    put_tps: float | None = None


TOPIC_STATS = JsonBody(
    bean(
        TopicStats,
        Field(
            "offsetTable",
            "offsets",
            map_of(
                MESSAGE_QUEUE_KEY,
                bean(
                    TopicOffset,
                    Field("lastUpdateTimestamp", "last_update_timestamp", INTEGER),
                    Field("maxOffset", "max_offset", INTEGER),
                    Field("minOffset", "min_offset", INTEGER),
                ),
            ),
        ),
        Field("topicPutTps", "put_tps", NUMBER),
    )
)


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

    offsets: Mapping[MessageQueue, OffsetLag] = field(default_factory=dict)
    consume_tps: float = 0.0


_CONSUME_STATS = bean(
    ConsumeStats,
    Field("consumeTps", "consume_tps", NUMBER),
    Field(
        "offsetTable",
        "offsets",
        map_of(
            MESSAGE_QUEUE_KEY,
            bean(
                OffsetLag,
                Field("brokerOffset", "broker_offset", INTEGER),
                Field("consumerOffset", "consumer_offset", INTEGER),
                Field("lastTimestamp", "last_timestamp", INTEGER),
                Field("pullOffset", "pull_offset", INTEGER),
            ),
        ),
    ),
)
CONSUME_STATS = JsonBody(_CONSUME_STATS)


@body
class BrokerConsumeStats(BodyBase):
    """GET_BROKER_CONSUME_STATS: one map per group, each with the group's topics."""

    groups: tuple[Mapping[str, list[ConsumeStats]], ...] = ()
    broker_address: str | None = None
    total_lag: int = 0
    total_inflight_lag: int = 0


BROKER_CONSUME_STATS = JsonBody(
    bean(
        BrokerConsumeStats,
        Field("brokerAddr", "broker_address", TEXT),
        Field("consumeStatsList", "groups", tuple_of(map_of(TEXT_KEY, list_of(_CONSUME_STATS)))),
        Field("totalDiff", "total_lag", INTEGER),
        Field("totalInflightDiff", "total_inflight_lag", INTEGER),
    )
)


@body
class StatsItem(BodyBase):
    """Sum and rates of one span."""

    sum: int = 0
    tps: float = 0.0
    average: float = 0.0


@body
class BrokerStatsData(BodyBase):
    """VIEW_BROKER_STATS_DATA."""

    minute: StatsItem = field(default_factory=StatsItem)
    hour: StatsItem = field(default_factory=StatsItem)
    day: StatsItem = field(default_factory=StatsItem)


_STATS_ITEM = bean(
    StatsItem, Field("avgpt", "average", NUMBER), Field("sum", "sum", INTEGER), Field("tps", "tps", NUMBER)
)
BROKER_STATS_DATA = JsonBody(
    bean(
        BrokerStatsData,
        Field("statsDay", "day", _STATS_ITEM),
        Field("statsHour", "hour", _STATS_ITEM),
        Field("statsMinute", "minute", _STATS_ITEM),
    )
)


@body
class QueueTimeSpan(BodyBase):
    """Times in ms of one queue: its first and last message, and the one consumed next; texts are for people."""

    queue: MessageQueue = MessageQueue("", "", 0)
    min_timestamp: int = 0
    max_timestamp: int = 0
    consume_timestamp: int = 0
    delay_ms: int = 0


@body
class ConsumeTimeSpans(BodyBase):
    """QUERY_CONSUME_TIME_SPAN."""

    spans: tuple[QueueTimeSpan, ...] = ()


CONSUME_TIME_SPANS = JsonBody(
    bean(
        ConsumeTimeSpans,
        Field(
            "consumeTimeSpanSet",
            "spans",
            tuple_of(
                bean(
                    QueueTimeSpan,
                    Field("consumeTimeStamp", "consume_timestamp", INTEGER),
                    Field("delayTime", "delay_ms", INTEGER),
                    Field("maxTimeStamp", "max_timestamp", INTEGER),
                    Field("messageQueue", "queue", MESSAGE_QUEUE),
                    Field("minTimeStamp", "min_timestamp", INTEGER),
                )
            ),
        ),
    )
)


@body
class TimerCount(BodyBase):
    """Messages of a topic that wait in the timer."""

    count: int = 0
    timestamp: int = 0


@body
class TimerMetrics(BodyBase):
    """GET_TIMER_METRICS."""

    data_version: DataVersion = field(default_factory=DataVersion)
    counts: Mapping[str, TimerCount] = field(default_factory=dict)


TIMER_METRICS = JsonBody(
    bean(
        TimerMetrics,
        Field("dataVersion", "data_version", DATA_VERSION_KIND),
        Field(
            "timingCount",
            "counts",
            map_of(
                TEXT_KEY, bean(TimerCount, Field("count", "count", INTEGER), Field("timeStamp", "timestamp", INTEGER))
            ),
        ),
    )
)
