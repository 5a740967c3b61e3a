"""`topics.json`: every topic of the broker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.format.config_files.json_file import JsonFile
from skyrocket.model.data_version import DataVersion
from skyrocket.model.topic_config import TopicConfig


@dataclass(frozen=True, slots=True)
class Topics:
    """Content of the file; topics by name."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: Annotated[dict[str, TopicConfig], "topicConfigTable"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_FILE = JsonFile(Topics)
decode, encode = _FILE.decode, _FILE.encode
