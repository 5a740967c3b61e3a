"""`consumerOrderInfo.json` (5.x): what ordered pop consumers have in hand, per queue."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.fastjson import Dialect, Json, dumps, loads
from skyrocket.fastjson.bean import INTEGER, Kind, bean, list_of


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


_ORDER_INFOS = bean(OrderInfos)


def decode(data: bytes) -> OrderInfos:
    """The content of the file; raises DataError where it is not."""
    return _ORDER_INFOS.read(loads(data))


def encode(infos: OrderInfos, dialect: Dialect) -> bytes:
    """The bytes of the file."""
    return dumps(_ORDER_INFOS.write(infos, dialect), dialect)
