"""A count of messages that wait for something, and when it last changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any


@dataclass(frozen=True, slots=True)
class Metric:
    """The count of one topic; RocketMQ lets it fall below zero."""

    count: int = 0
    timestamp: Annotated[int, "timeStamp"] = 0
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)
