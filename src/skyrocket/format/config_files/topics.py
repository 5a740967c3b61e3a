"""`topics.json`: every topic of the broker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import bean
from skyrocket.model.data_version import DataVersion
from skyrocket.model.topic_config import TopicConfig


@dataclass(frozen=True, slots=True)
class Topics:
    """Content of the file; topics by name."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: Annotated[dict[str, TopicConfig], "topicConfigTable"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_TOPICS = bean(Topics)


def decode(data: bytes) -> Topics:
    """The content of the file; raises DataError where it is not."""
    return _TOPICS.read(loads(data))


def encode(topics: Topics, dialect: Dialect) -> bytes:
    """The bytes of the file."""
    return dumps(_TOPICS.write(topics, dialect), dialect)
