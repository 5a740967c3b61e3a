"""`transactionMetrics` (5.x): how many half messages of each topic wait for their end."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import TEXT_KEY, Field, bean, map_of
from skyrocket.format.config_files.metric import METRIC, Metric
from skyrocket.model.data_version import DataVersion
from skyrocket.model.json_tables import DATA_VERSION


@dataclass(frozen=True, slots=True)
class TransactionMetrics:
    """Content of the file, by real topic."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: dict[str, Metric] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_METRICS = bean(
    TransactionMetrics,
    Field("dataVersion", "data_version", DATA_VERSION),
    Field("transactionCount", "topics", map_of(TEXT_KEY, METRIC)),
)


def decode(data: bytes) -> TransactionMetrics:
    """The content of the file; raises DataError where it is not."""
    return _METRICS.read(loads(data))


def encode(metrics: TransactionMetrics) -> bytes:
    """The bytes of the file: one line in every version."""
    return dumps(_METRICS.write(metrics, Dialect.COMPACT))
