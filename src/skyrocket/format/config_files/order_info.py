"""`consumerOrderInfo.json` (5.x): what ordered pop consumers have in hand, per queue."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skyrocket.fastjson import Dialect, Json, dumps, loads
from skyrocket.fastjson.bean import INTEGER, INTEGER_KEY, TEXT, TEXT_KEY, Field, Kind, bean, list_of, map_of


@dataclass(frozen=True, slots=True)
class OrderInfo:
    """The messages of one pop; `committed` has bit n set when the n-th of `offsets` was acknowledged."""

    pop_time: int = 0
    invisible_ms: int | None = None
    offsets: list[int] = field(default_factory=list)
    consumed_counts: dict[int, int] | None = None
    next_visible_times: dict[int, int] | None = None
    last_consume_time: int = 0
    committed: int = 0
    attempt_id: str | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class OrderInfos:
    """Content of the file: `topic@group` → queue id → what is in hand."""

    level: str | None = "QUEUE"
    table: dict[str, dict[int, OrderInfo]] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


def _absolute(value: Json) -> list[int]:
    first, *distances = list_of(INTEGER).read(value) or [0]
    return [first, *(first + distance for distance in distances)] if value else []


def _relative(offsets: list[int], _dialect: Dialect) -> Json:
    return [*offsets[:1], *(offset - offsets[0] for offset in offsets[1:])]


_ORDER_INFO = bean(
    OrderInfo,
    Field("a", "attempt_id", TEXT),
    Field("cm", "committed", INTEGER),
    Field("i", "invisible_ms", INTEGER),
    Field("l", "last_consume_time", INTEGER),
    Field("o", "offsets", Kind(_absolute, _relative)),  # the first as it is, the others as distance to it
    Field("oc", "consumed_counts", map_of(INTEGER_KEY, INTEGER)),
    Field("ot", "next_visible_times", map_of(INTEGER_KEY, INTEGER)),
    Field("popTime", "pop_time", INTEGER),
)

_ORDER_INFOS = bean(
    OrderInfos,
    Field("orderedConsumptionLevel", "level", TEXT),
    Field("table", "table", map_of(TEXT_KEY, map_of(INTEGER_KEY, _ORDER_INFO))),
)


def decode(data: bytes) -> OrderInfos:
    """The content of the file; raises DataError where it is not."""
    return _ORDER_INFOS.read(loads(data))


def encode(infos: OrderInfos, dialect: Dialect) -> bytes:
    """The bytes of the file."""
    return dumps(_ORDER_INFOS.write(infos, dialect), dialect)
