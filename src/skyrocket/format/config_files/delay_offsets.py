"""`delayOffset.json`: how far each delay level has been delivered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.fastjson.bean import SINCE_5
from skyrocket.format.config_files.json_file import JsonFile
from skyrocket.model.data_version import DataVersion


@dataclass(frozen=True, slots=True)
class DelayOffsets:
    """Content of the file: delay level (from 1; queue id + 1) → next queue offset to deliver."""

    data_version: Annotated[DataVersion, SINCE_5] = field(default_factory=DataVersion)
    offsets: Annotated[dict[int, int], "offsetTable"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_FILE = JsonFile(DelayOffsets)
decode, encode = _FILE.decode, _FILE.encode
