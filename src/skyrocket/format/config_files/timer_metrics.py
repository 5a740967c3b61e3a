"""`timermetrics` (5.x): how many timer messages of each topic wait."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import bean
from skyrocket.format.config_files.metric import Metric
from skyrocket.model.data_version import DataVersion


@dataclass(frozen=True, slots=True)
class TimerMetrics:
    """Content of the file, by real topic."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: Annotated[dict[str, Metric], "timingCount"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_METRICS = bean(TimerMetrics)


def decode(data: bytes) -> TimerMetrics:
    """The content of the file; raises DataError where it is not."""
    return _METRICS.read(loads(data))


def encode(metrics: TimerMetrics) -> bytes:
    """The bytes of the file: one line in every version."""
    return dumps(_METRICS.write(metrics, Dialect.COMPACT))
