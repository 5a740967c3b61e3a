"""`topicQueueMapping.json` (5.x): static topics, whose logical queues are spread over brokers. Empty normally."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.format.config_files.json_file import JsonFile
from skyrocket.model.data_version import DataVersion


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


_FILE = JsonFile(QueueMappings)
decode, encode = _FILE.decode, _FILE.encode
