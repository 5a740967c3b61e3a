"""`timermetrics` and `transactionMetrics` (5.x): how many timers and half messages of each topic wait."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.format.config_files.json_file import JsonFile
from skyrocket.model.data_version import DataVersion


@dataclass(frozen=True, slots=True)
class Metric:
    """The count of one topic, and when it last changed; RocketMQ lets it fall below zero."""

    count: int = 0
    timestamp: Annotated[int, "timeStamp"] = 0
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class TimerMetrics:
    """Content of `timermetrics`, by real topic."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: Annotated[dict[str, Metric], "timingCount"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class TransactionMetrics:
    """Content of `transactionMetrics`, by real topic."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: Annotated[dict[str, Metric], "transactionCount"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


TIMERS = JsonFile(TimerMetrics)
TRANSACTIONS = JsonFile(TransactionMetrics)
