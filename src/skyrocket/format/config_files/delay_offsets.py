"""`delayOffset.json`: how far each delay level has been delivered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import INTEGER, INTEGER_KEY, Field, bean, map_of
from skyrocket.model.data_version import DataVersion
from skyrocket.model.json_tables import DATA_VERSION


@dataclass(frozen=True, slots=True)
class DelayOffsets:
    """Content of the file: delay level (from 1; queue id + 1) → next queue offset to deliver."""

    data_version: DataVersion = field(default_factory=DataVersion)
    offsets: dict[int, int] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_DELAY_OFFSETS = bean(
    DelayOffsets,
    Field("dataVersion", "data_version", DATA_VERSION, since_5=True),
    Field("offsetTable", "offsets", map_of(INTEGER_KEY, INTEGER)),
)


def decode(data: bytes) -> DelayOffsets:
    """The content of the file; raises DataError where it is not."""
    return _DELAY_OFFSETS.read(loads(data))


def encode(offsets: DelayOffsets, dialect: Dialect) -> bytes:
    """The bytes of the file."""
    return dumps(_DELAY_OFFSETS.write(offsets, dialect), dialect)
