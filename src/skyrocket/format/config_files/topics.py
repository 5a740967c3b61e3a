"""`topics.json`: every topic of the broker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import TEXT_KEY, Field, bean, map_of
from skyrocket.model.data_version import DataVersion
from skyrocket.model.json_tables import DATA_VERSION, TOPIC_CONFIG
from skyrocket.model.topic_config import TopicConfig


@dataclass(frozen=True, slots=True)
class Topics:
    """Content of the file; topics by name."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: dict[str, TopicConfig] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_TOPICS = bean(
    Topics,
    Field("dataVersion", "data_version", DATA_VERSION),
    Field("topicConfigTable", "topics", map_of(TEXT_KEY, TOPIC_CONFIG)),
)


def decode(data: bytes) -> Topics:
    """The content of the file; raises DataError where it is not."""
    return _TOPICS.read(loads(data))


def encode(topics: Topics, dialect: Dialect) -> bytes:
    """The bytes of the file."""
    return dumps(_TOPICS.write(topics, dialect), dialect)
