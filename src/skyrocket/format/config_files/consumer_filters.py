"""`consumerFilter.json`: the filter expressions (other than tags) that groups have subscribed with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.fastjson.bean import FLAG, TEXT_KEY, Field, bean, map_of
from skyrocket.format.config_files.json_file import JsonFile


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


_FILE = JsonFile(ConsumerFilters)
decode, encode = _FILE.decode, _FILE.encode
