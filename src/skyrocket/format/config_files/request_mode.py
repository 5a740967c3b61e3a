"""`messageRequestMode.json` (5.x): whether a group receives a topic by pull or by pop."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.fastjson.bean import one_of
from skyrocket.format.config_files.json_file import JsonFile

PULL = "PULL"
POP = "POP"


@dataclass(frozen=True, slots=True)
class RequestMode:
    """How one group receives one topic."""

    topic: str
    group: Annotated[str, "consumerGroup"]
    mode: Annotated[str, one_of(PULL, POP)] = PULL
    pop_share_queues: Annotated[int, "popShareQueueNum"] = 0
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class RequestModes:
    """Content of the file: topic → group → mode."""

    modes: Annotated[dict[str, dict[str, RequestMode]], "messageRequestModeMap"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_FILE = JsonFile(RequestModes)
decode, encode = _FILE.decode, _FILE.encode
