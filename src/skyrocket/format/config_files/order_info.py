"""`consumerOrderInfo.json` (5.x): what ordered pop consumers have in hand, per queue."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.fastjson import Dialect, Json
from skyrocket.fastjson.bean import INTEGER, Kind, list_of
from skyrocket.format.config_files.json_file import JsonFile


def _absolute(value: Json) -> list[int]:
    first, *distances = list_of(INTEGER).read(value) or [0]
    return [first, *(first + distance for distance in distances)] if value else []


def _relative(offsets: list[int], _dialect: Dialect) -> Json:
    return [*offsets[:1], *(offset - offsets[0] for offset in offsets[1:])]


@dataclass(frozen=True, slots=True)
class OrderInfo:
    """The messages of one pop; `committed` has bit n set when the n-th of `offsets` was acknowledged."""

    pop_time: int = 0
    invisible_ms: Annotated[int | None, "i"] = None
    offsets: Annotated[list[int], "o", Kind(_absolute, _relative)] = field(default_factory=list)
    consumed_counts: Annotated[dict[int, int] | None, "oc"] = None
    next_visible_times: Annotated[dict[int, int] | None, "ot"] = None
    last_consume_time: Annotated[int, "l"] = 0
    committed: Annotated[int, "cm"] = 0
    attempt_id: Annotated[str | None, "a"] = None
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class OrderInfos:
    """Content of the file: `topic@group` → queue id → what is in hand."""

    level: Annotated[str | None, "orderedConsumptionLevel"] = "QUEUE"
    table: dict[str, dict[int, OrderInfo]] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_FILE = JsonFile(OrderInfos)
decode, encode = _FILE.decode, _FILE.encode
