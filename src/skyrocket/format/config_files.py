"""The JSON files under `config/`, and that of the name server: bytes ↔ dataclass.

Each is a `JsonFile` with `decode(data)` and `encode(content, dialect)`; `Dialect.V4_9` and `V5_4` give the very bytes
of those RocketMQ versions, `COMPACT`, the default, the wire form, which is also that of files on one line.
Java's map order is kept as read. No I/O here: `store.config_file` loads and saves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Generic, TypeVar

from skyrocket.fastjson import Dialect, Json, dumps, loads
from skyrocket.fastjson.bean import FLAG, INTEGER, SINCE_5, TEXT_KEY, Field, Kind, bean, list_of, map_of, one_of
from skyrocket.model.data_version import DataVersion
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig

T = TypeVar("T")

PULL = "PULL"
POP = "POP"
_SEPARATOR = "@"


class JsonFile(Generic[T]):
    """A file that holds one Java object; `content` is its dataclass."""

    def __init__(self, content: type[T], *derived: Field) -> None:
        self._kind = bean(content, *derived)

    def decode(self, data: bytes) -> T:
        """The content of the file; raises DataError for anything else."""
        return self._kind.read(loads(data))

    def encode(self, content: T, dialect: Dialect = Dialect.COMPACT) -> bytes:
        """The bytes of the file."""
        return dumps(self._kind.write(content, dialect), dialect)


# ── topics.json: every topic of the broker ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Topics:
    """Content of the file; topics by name."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: Annotated[dict[str, TopicConfig], "topicConfigTable"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


TOPICS = JsonFile(Topics)


# ── subscriptionGroup.json: every consumer group, and which operations are forbidden to it ────────────────────────────


@dataclass(frozen=True, slots=True)
class SubscriptionGroups:
    """Content of the file; `forbidden` is group → topic → bitmap of operations."""

    data_version: DataVersion = field(default_factory=DataVersion)
    groups: Annotated[dict[str, SubscriptionGroup], "subscriptionGroupTable"] = field(default_factory=dict)
    forbidden: Annotated[dict[str, dict[str, int]], "forbiddenTable", SINCE_5] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


SUBSCRIPTION_GROUPS = JsonFile(SubscriptionGroups)


# ── consumerOffset.json: how far each group has consumed each queue; lmqConsumerOffset.json with light queues too ─────


@dataclass(frozen=True, slots=True)
class ConsumerOffsets:
    """Content of the file: `topic@group` → queue id → next queue offset to consume.

    `topics_of_group` only repeats the keys; it is kept for the order of its names and made anew when written.
    `light_offsets`, `topic@group` → offset, is None in the ordinary file.
    """

    data_version: Annotated[DataVersion, SINCE_5] = field(default_factory=DataVersion)
    offsets: Annotated[dict[str, dict[int, int]], "offsetTable"] = field(default_factory=dict)
    topics_of_group: Annotated[dict[str, list[str]], "groupTopicMap", SINCE_5] = field(default_factory=dict)
    light_offsets: Annotated[dict[str, int] | None, "lmqOffsetTable"] = None
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


class _ConsumerOffsetsFile(JsonFile[ConsumerOffsets]):
    def encode(self, content: ConsumerOffsets, dialect: Dialect = Dialect.COMPACT) -> bytes:
        """The bytes of the file."""
        repeated = {} if dialect is Dialect.V4_9 else topics_by_group(content.offsets, content.topics_of_group)
        return super().encode(replace(content, topics_of_group=repeated), dialect)


CONSUMER_OFFSETS = _ConsumerOffsetsFile(ConsumerOffsets)


def offset_key(topic: str, group: str) -> str:
    """The outer key of the table."""
    return f"{topic}{_SEPARATOR}{group}"


def split_offset_key(key: str) -> tuple[str, str] | None:
    """Topic and group of a key; None when it is no such key."""
    parts = key.split(_SEPARATOR)
    return (parts[0], parts[1]) if len(parts) == 2 else None


def topics_by_group(keys: Iterable[str], like: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Which topics each group has offsets of; names that are in `like` keep its order and lead."""
    found: dict[str, dict[str, None]] = {}
    for topic, group in filter(None, map(split_offset_key, keys)):
        found.setdefault(group, {})[topic] = None
    ordered: dict[str, list[str]] = {}
    for group in [*(group for group in like if group in found), *found]:
        if group not in ordered:
            known = [topic for topic in like.get(group, ()) if topic in found[group]]
            ordered[group] = list(dict.fromkeys([*known, *found[group]]))
    return ordered


# ── consumerFilter.json: the filter expressions (other than tags) that groups have subscribed with ────────────────────


@dataclass(frozen=True, slots=True)
class BloomPositions:
    """The bits of one subscription in a bitmap of `bits`."""

    bits: Annotated[int, "bitNum"] = 0
    positions: Annotated[tuple[int, ...], "bitPos"] = ()
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ConsumerFilter:
    """A group's expression for one topic; times in milliseconds, `dead_time` 0 while consumers are connected."""

    group: Annotated[str, "consumerGroup"]
    topic: str
    expression: str = ""
    expression_type: str = "SQL92"
    born_time: int = 0
    dead_time: int = 0
    client_version: int = 0
    bloom: Annotated[BloomPositions | None, "bloomFilterData"] = None
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_dead(self) -> bool:
        """Whether no consumer of the group has been connected since."""
        return self.dead_time >= self.born_time


_CONSUMER_FILTER = bean(ConsumerFilter, Field("dead", "is_dead", FLAG, derived=True))


@dataclass(frozen=True, slots=True)
class TopicFilters:
    """All filters of one topic, by group."""

    topic: str
    groups: Annotated[dict[str, ConsumerFilter], "groupFilterData", map_of(TEXT_KEY, _CONSUMER_FILTER)] = field(
        default_factory=dict
    )
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ConsumerFilters:
    """Content of the file, by topic."""

    topics: Annotated[dict[str, TopicFilters], "filterDataByTopic"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


CONSUMER_FILTERS = JsonFile(ConsumerFilters)


# ── delayOffset.json: how far each delay level has been delivered ─────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class DelayOffsets:
    """Content of the file: delay level (from 1; queue id + 1) → next queue offset to deliver."""

    data_version: Annotated[DataVersion, SINCE_5] = field(default_factory=DataVersion)
    offsets: Annotated[dict[int, int], "offsetTable"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


DELAY_OFFSETS = JsonFile(DelayOffsets)


# ── consumerOrderInfo.json (5.x): what ordered pop consumers have in hand, per queue ──────────────────────────────────


def _absolute(value: Json) -> list[int]:
    first, *distances = list_of(INTEGER).read(value) or [0]
    return [first, *(first + distance for distance in distances)] if value else []


def _relative(offsets: list[int], _dialect: Dialect) -> Json:
    return [*offsets[:1], *(offset - offsets[0] for offset in offsets[1:])]


@dataclass(frozen=True, slots=True)
class OrderInfo:
    """The messages of one pop; `committed` has bit n set when the n-th of `offsets` was acknowledged."""

    pop_time: int = 0
    invisible_ms: Annotated[int | None, "i"] = None
    offsets: Annotated[list[int], "o", Kind(_absolute, _relative)] = field(default_factory=list)
    consumed_counts: Annotated[dict[int, int] | None, "oc"] = None
    next_visible_times: Annotated[dict[int, int] | None, "ot"] = None
    last_consume_time: Annotated[int, "l"] = 0
    committed: Annotated[int, "cm"] = 0
    attempt_id: Annotated[str | None, "a"] = None
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class OrderInfos:
    """Content of the file: `topic@group` → queue id → what is in hand."""

    level: Annotated[str | None, "orderedConsumptionLevel"] = "QUEUE"
    table: dict[str, dict[int, OrderInfo]] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


ORDER_INFOS = JsonFile(OrderInfos)


# ── topicQueueMapping.json (5.x): static topics, whose logical queues are spread over brokers. Empty normally ─────────


@dataclass(frozen=True, slots=True)
class MappingItem:
    """A stretch of a logical queue and the physical queue that holds it; -1 means open."""

    generation: Annotated[int, "gen"] = 0
    queue_id: int = 0
    broker_name: Annotated[str | None, "bname"] = None
    logic_offset: int = 0
    start_offset: int = 0
    end_offset: int = -1
    start_time: Annotated[int, "timeOfStart"] = -1
    end_time: Annotated[int, "timeOfEnd"] = -1
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class TopicQueueMapping:
    """The logical queues of one static topic that this broker hosts."""

    topic: str
    scope: str = "__global__"
    total_queues: int = 0
    broker_name: Annotated[str | None, "bname"] = None
    epoch: int = 0
    dirty: bool = False
    current_ids: Annotated[dict[int, int], "currIdMap"] = field(default_factory=dict)
    hosted_queues: dict[int, list[MappingItem]] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class QueueMappings:
    """Content of the file, by topic."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: Annotated[dict[str, TopicQueueMapping], "topicQueueMappingInfoMap"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


QUEUE_MAPPINGS = JsonFile(QueueMappings)


# ── messageRequestMode.json (5.x): whether a group receives a topic by pull or by pop ─────────────────────────────────


@dataclass(frozen=True, slots=True)
class RequestMode:
    """How one group receives one topic."""

    topic: str
    group: Annotated[str, "consumerGroup"]
    mode: Annotated[str, one_of(PULL, POP)] = PULL
    pop_share_queues: Annotated[int, "popShareQueueNum"] = 0
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class RequestModes:
    """Content of the file: topic → group → mode."""

    modes: Annotated[dict[str, dict[str, RequestMode]], "messageRequestModeMap"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


REQUEST_MODES = JsonFile(RequestModes)


# ── timermetrics and transactionMetrics (5.x): how many timers and half messages of each topic wait ───────────────────


@dataclass(frozen=True, slots=True)
class Metric:
    """The count of one topic, and when it last changed; RocketMQ lets it fall below zero."""

    count: int = 0
    timestamp: Annotated[int, "timeStamp"] = 0
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class TimerMetrics:
    """Content of `timermetrics`, by real topic."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: Annotated[dict[str, Metric], "timingCount"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class TransactionMetrics:
    """Content of `transactionMetrics`, by real topic."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: Annotated[dict[str, Metric], "transactionCount"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


TIMERS = JsonFile(TimerMetrics)
TRANSACTIONS = JsonFile(TransactionMetrics)


# ── kvConfig.json of the name server: settings by namespace, such as which topics are strictly ordered ────────────────


@dataclass(frozen=True, slots=True)
class KvConfig:
    """Content of the file: namespace → key → value."""

    namespaces: Annotated[dict[str, dict[str, str]], "configTable"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


KV_CONFIG = JsonFile(KvConfig)


# The files of a broker by name; that of the name server is not among them.
CONFIG_FILES: dict[str, JsonFile[Any]] = {
    "topics.json": TOPICS,
    "subscriptionGroup.json": SUBSCRIPTION_GROUPS,
    "consumerOffset.json": CONSUMER_OFFSETS,
    "lmqConsumerOffset.json": CONSUMER_OFFSETS,
    "consumerFilter.json": CONSUMER_FILTERS,
    "delayOffset.json": DELAY_OFFSETS,
    "consumerOrderInfo.json": ORDER_INFOS,
    "topicQueueMapping.json": QUEUE_MAPPINGS,
    "messageRequestMode.json": REQUEST_MODES,
    "timermetrics": TIMERS,
    "transactionMetrics": TRANSACTIONS,
}
