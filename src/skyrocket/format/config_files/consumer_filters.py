"""`consumerFilter.json`: the filter expressions (other than tags) that groups have subscribed with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import FLAG, INTEGER, TEXT, TEXT_KEY, Field, bean, map_of, tuple_of
from skyrocket.format.config_files.bloom_filter import BloomFilter


@dataclass(frozen=True, slots=True)
class BloomPositions:
    """The bits of one subscription in a bitmap of `bits`."""

    bits: int = 0
    positions: tuple[int, ...] = ()
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ConsumerFilter:
    """A group's expression for one topic; times in milliseconds, `dead_time` 0 while consumers are connected."""

    group: str
    topic: str
    expression: str = ""
    expression_type: str = "SQL92"
    born_time: int = 0
    dead_time: int = 0
    client_version: int = 0
    bloom: BloomPositions | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_dead(self) -> bool:
        """Whether no consumer of the group has been connected since."""
        return self.dead_time >= self.born_time


@dataclass(frozen=True, slots=True)
class TopicFilters:
    """All filters of one topic, by group."""

    topic: str
    groups: dict[str, ConsumerFilter] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ConsumerFilters:
    """Content of the file, by topic."""

    topics: dict[str, TopicFilters] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def fits(self, bloom_filter: BloomFilter) -> bool:
        """Whether all positions were made for this filter; RocketMQ discards everything otherwise."""
        filters = (entry for topic in self.topics.values() for entry in topic.groups.values())
        return all(entry.bloom is not None and entry.bloom.bits == bloom_filter.bits for entry in filters)


_CONSUMER_FILTER = bean(
    ConsumerFilter,
    Field(
        "bloomFilterData",
        "bloom",
        bean(
            BloomPositions,
            Field("bitNum", "bits", INTEGER),
            Field("bitPos", "positions", tuple_of(INTEGER)),
        ),
    ),
    Field("bornTime", "born_time", INTEGER),
    Field("clientVersion", "client_version", INTEGER),
    Field("consumerGroup", "group", TEXT),
    Field("dead", "is_dead", FLAG, derived=True),
    Field("deadTime", "dead_time", INTEGER),
    Field("expression", "expression", TEXT),
    Field("expressionType", "expression_type", TEXT),
    Field("topic", "topic", TEXT),
)

_TOPIC_FILTERS = bean(
    TopicFilters,
    Field("groupFilterData", "groups", map_of(TEXT_KEY, _CONSUMER_FILTER)),
    Field("topic", "topic", TEXT),
)

_CONSUMER_FILTERS = bean(ConsumerFilters, Field("filterDataByTopic", "topics", map_of(TEXT_KEY, _TOPIC_FILTERS)))


def bloom_positions(bloom_filter: BloomFilter, group: str, topic: str) -> BloomPositions:
    """What a new filter of a group stores."""
    return BloomPositions(bloom_filter.bits, bloom_filter.positions(group, topic))


def decode(data: bytes) -> ConsumerFilters:
    """The content of the file; raises DataError where it is not."""
    return _CONSUMER_FILTERS.read(loads(data))


def encode(filters: ConsumerFilters, dialect: Dialect) -> bytes:
    """The bytes of the file."""
    return dumps(_CONSUMER_FILTERS.write(filters, dialect), dialect)
