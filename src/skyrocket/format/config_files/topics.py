"""`topics.json`: every topic of the broker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import FLAG, INTEGER, TEXT, TEXT_KEY, Field, bean, map_of, one_of
from skyrocket.format.config_files.data_version import DATA_VERSION
from skyrocket.model.data_version import DataVersion
from skyrocket.model.topic_config import MULTI_TAG, SINGLE_TAG, TopicConfig


@dataclass(frozen=True, slots=True)
class Topics:
    """Content of the file; topics by name."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: dict[str, TopicConfig] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


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
