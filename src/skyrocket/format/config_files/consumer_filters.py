"""`consumerFilter.json`: the filter expressions (other than tags) that groups have subscribed with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import FLAG, TEXT_KEY, Field, bean, map_of
from skyrocket.format.config_files.bloom_filter import BloomFilter


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

    def fits(self, bloom_filter: BloomFilter) -> bool:
        """Whether all positions were made for this filter; RocketMQ discards everything otherwise."""
        filters = (entry for topic in self.topics.values() for entry in topic.groups.values())
        return all(entry.bloom is not None and entry.bloom.bits == bloom_filter.bits for entry in filters)


_CONSUMER_FILTERS = bean(ConsumerFilters)


def bloom_positions(bloom_filter: BloomFilter, group: str, topic: str) -> BloomPositions:
    """What a new filter of a group stores."""
    return BloomPositions(bloom_filter.bits, bloom_filter.positions(group, topic))


def decode(data: bytes) -> ConsumerFilters:
    """The content of the file; raises DataError where it is not."""
    return _CONSUMER_FILTERS.read(loads(data))


def encode(filters: ConsumerFilters, dialect: Dialect) -> bytes:
    """The bytes of the file."""
    return dumps(_CONSUMER_FILTERS.write(filters, dialect), dialect)
