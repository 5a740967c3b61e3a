"""`messageRequestMode.json` (5.x): whether a group receives a topic by pull or by pop."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import INTEGER, TEXT, TEXT_KEY, Field, bean, map_of, one_of

PULL = "PULL"
POP = "POP"


@dataclass(frozen=True, slots=True)
class RequestMode:
    """How one group receives one topic."""

    topic: str
    group: str
    mode: str = PULL
    pop_share_queues: int = 0
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class RequestModes:
    """Content of the file: topic → group → mode."""

    modes: dict[str, dict[str, RequestMode]] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_REQUEST_MODE = bean(
    RequestMode,
    Field("consumerGroup", "group", TEXT),
    Field("mode", "mode", one_of(PULL, POP)),
    Field("popShareQueueNum", "pop_share_queues", INTEGER),
    Field("topic", "topic", TEXT),
)

_REQUEST_MODES = bean(
    RequestModes, Field("messageRequestModeMap", "modes", map_of(TEXT_KEY, map_of(TEXT_KEY, _REQUEST_MODE)))
)


def decode(data: bytes) -> RequestModes:
    """The content of the file; raises DataError where it is not."""
    return _REQUEST_MODES.read(loads(data))


def encode(modes: RequestModes, dialect: Dialect) -> bytes:
    """The bytes of the file."""
    return dumps(_REQUEST_MODES.write(modes, dialect), dialect)
