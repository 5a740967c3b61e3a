"""How push consumers consume; times are in seconds, names are RocketMQ's in Python's spelling."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from skyrocket.client.consumer.allocation import AllocationStrategy, Averagely
from skyrocket.client.consumer.start_position import ConsumeFromWhere, MessageModel, timestamp_ms
from skyrocket.client.core.errors import WrongUse

_RANGES: dict[str, tuple[int, int]] = {
    "max_concurrency": (1, 1000),
    "consume_concurrently_max_span": (1, 65535),
    "pull_threshold_for_queue": (1, 65535),
    "pull_threshold_size_for_queue": (1, 1024),
    "consume_message_batch_max_size": (1, 1024),
    "pull_batch_size": (1, 1024),
}


@dataclass(frozen=True, slots=True)
class PushConsumerSettings:
    """Defaults are RocketMQ's."""

    message_model: MessageModel = MessageModel.CLUSTERING
    orderly: bool = False
    auto_commit: bool = True  # in order; False: the handler returns COMMIT or ROLLBACK when it is time
    consume_from: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp: datetime | str | None = None  # for CONSUME_FROM_TIMESTAMP; None: half an hour ago
    new_group_from_zero: bool = True  # RocketMQ: a new group gets all of a young topic, whatever consume_from says
    strategy: AllocationStrategy = field(default_factory=Averagely)
    max_concurrency: int = 20  # handlers at once
    consume_message_batch_max_size: int = 1
    consume_timeout: float = 900.0
    consume_concurrently_max_span: int = 2000
    pull_threshold_for_queue: int = 1000
    pull_threshold_size_for_queue: int = 100  # MiB
    pull_threshold_for_topic: int = -1  # shared by all queues in hand
    pull_threshold_size_for_topic: int = -1  # MiB
    pull_batch_size: int = 32
    pull_batch_bytes: int = 262_144
    pull_interval: float = 0.0
    max_reconsume_times: int = -1  # 16 when concurrent, without end when in order
    suspend_current_queue: float = 1.0
    persist_interval: float = 5.0
    shutdown_timeout: float = 30.0  # how long running handlers are waited for
    local_offsets: Path | None = None  # broadcasting: where offsets are kept
    broadcast_from_newest: bool = False  # broadcasting: no offset is kept, what came while it was stopped is skipped

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value: Any = getattr(self, name)
            if not low <= value <= high:
                raise WrongUse(f"{name}={value} is out of range: it must be between {low} and {high}")
        for name, high in (("pull_threshold_for_topic", 6_553_500), ("pull_threshold_size_for_topic", 102_400)):
            value = getattr(self, name)
            if value != -1 and not 1 <= value <= high:
                raise WrongUse(f"{name}={value} is out of range: it must be -1 or between 1 and {high}")
        if self.orderly and self.message_model is MessageModel.BROADCASTING:
            raise WrongUse(
                "orderly=True and BROADCASTING exclude each other: no lock protects the order if all members get all; "
                "use CLUSTERING, with a group for each member if each must see everything"
            )
        if self.broadcast_from_newest and self.message_model is not MessageModel.BROADCASTING:
            raise WrongUse("broadcast_from_newest=True is for BROADCASTING: the members of a group share its offsets")
        if self.broadcast_from_newest and self.consume_from is not ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET:
            raise WrongUse(f"broadcast_from_newest=True and consume_from={self.consume_from.value} exclude each other")
        if not self.auto_commit and not self.orderly:
            raise WrongUse("auto_commit=False is for orderly=True: else what is committed is the lowest unfinished")
        if self.consume_timestamp is not None:
            timestamp_ms(self.consume_timestamp)
