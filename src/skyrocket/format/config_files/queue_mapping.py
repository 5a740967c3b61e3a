"""`topicQueueMapping.json` (5.x): static topics, whose logical queues are spread over brokers. Empty normally."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import FLAG, INTEGER, INTEGER_KEY, TEXT, TEXT_KEY, Field, bean, list_of, map_of
from skyrocket.model.data_version import DataVersion
from skyrocket.model.json_tables import DATA_VERSION


@dataclass(frozen=True, slots=True)
class MappingItem:
    """A stretch of a logical queue and the physical queue that holds it; -1 means open."""

    generation: int = 0
    queue_id: int = 0
    broker_name: str | None = None
    logic_offset: int = 0
    start_offset: int = 0
    end_offset: int = -1
    start_time: int = -1
    end_time: int = -1
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class TopicQueueMapping:
    """The logical queues of one static topic that this broker hosts."""

    topic: str
    scope: str = "__global__"
    total_queues: int = 0
    broker_name: str | None = None
    epoch: int = 0
    dirty: bool = False
    current_ids: dict[int, int] = field(default_factory=dict)
    hosted_queues: dict[int, list[MappingItem]] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class QueueMappings:
    """Content of the file, by topic."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: dict[str, TopicQueueMapping] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_MAPPING_ITEM = bean(
    MappingItem,
    Field("bname", "broker_name", TEXT),
    Field("endOffset", "end_offset", INTEGER),
    Field("gen", "generation", INTEGER),
    Field("logicOffset", "logic_offset", INTEGER),
    Field("queueId", "queue_id", INTEGER),
    Field("startOffset", "start_offset", INTEGER),
    Field("timeOfEnd", "end_time", INTEGER),
    Field("timeOfStart", "start_time", INTEGER),
)

TOPIC_QUEUE_MAPPING = bean(
    TopicQueueMapping,
    Field("bname", "broker_name", TEXT),
    Field("currIdMap", "current_ids", map_of(INTEGER_KEY, INTEGER)),
    Field("dirty", "dirty", FLAG),
    Field("epoch", "epoch", INTEGER),
    Field("hostedQueues", "hosted_queues", map_of(INTEGER_KEY, list_of(_MAPPING_ITEM))),
    Field("scope", "scope", TEXT),
    Field("topic", "topic", TEXT),
    Field("totalQueues", "total_queues", INTEGER),
)

_QUEUE_MAPPINGS = bean(
    QueueMappings,
    Field("dataVersion", "data_version", DATA_VERSION),
    Field("topicQueueMappingInfoMap", "topics", map_of(TEXT_KEY, TOPIC_QUEUE_MAPPING)),
)


def decode(data: bytes) -> QueueMappings:
    """The content of the file; raises DataError where it is not."""
    return _QUEUE_MAPPINGS.read(loads(data))


def encode(mappings: QueueMappings, dialect: Dialect) -> bytes:
    """The bytes of the file."""
    return dumps(_QUEUE_MAPPINGS.write(mappings, dialect), dialect)
