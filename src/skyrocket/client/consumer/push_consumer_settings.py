"""How push consumers consume; times are in seconds, names are RocketMQ's in Python's spelling."""

import os
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from skyrocket.client.consumer.allocation import AllocationStrategy, Averagely
from skyrocket.client.consumer.start_position import ConsumeFromWhere, MessageModel, timestamp_ms
from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.setting_types import check_types

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
    """CLUSTERING: members share the messages; BROADCASTING: each gets all."""
    orderly: bool = False
    """Consume each queue in order: one call at a time, while the broker's lock is ours."""
    auto_commit: bool = True
    """With orderly=True; False: the handler returns COMMIT or ROLLBACK when it is time."""
    consume_from: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    """Where a group without offsets begins: last, first, or a moment."""
    consume_timestamp: datetime | str | None = None
    """The moment for CONSUME_FROM_TIMESTAMP; None: half an hour ago."""
    new_group_from_zero: bool = True
    """RocketMQ: a new group gets all of a young topic, whatever consume_from says."""
    strategy: AllocationStrategy = field(default_factory=Averagely)
    """How members share queues; all members of a group must use the same."""
    max_concurrency: int = 20
    """Handlers at once; plain functions have as many threads."""
    consume_message_batch_max_size: int = 1
    """Messages in one call of a handler with batch=True."""
    consume_timeout: float = 900.0
    """Seconds after which a message whose handler has not returned is sent back."""
    consume_concurrently_max_span: int = 2000
    """Pulling pauses when the first and the last unfinished message are farther apart."""
    pull_threshold_for_queue: int = 1000
    """Pulling pauses when so many messages of a queue are in hand."""
    pull_threshold_size_for_queue: int = 100
    """The same in MiB."""
    pull_threshold_for_topic: int = -1
    """Messages in hand for all queues of a topic together; -1: no limit."""
    pull_threshold_size_for_topic: int = -1
    """The same in MiB."""
    pull_batch_size: int = 32
    """Messages that one pull may bring."""
    pull_batch_bytes: int = 262_144
    """Bytes that one pull may bring, if the broker knows this limit."""
    pull_interval: float = 0.0
    """Seconds between two pulls of a queue."""
    max_reconsume_times: int = -1
    """Retries before a message goes to the dead letters; -1: 16 when concurrent, no end when in order."""
    suspend_current_queue: float = 1.0
    """Seconds that a queue rests in order after a handler failed."""
    persist_interval: float = 5.0
    """Seconds between two reports of progress to the brokers."""
    shutdown_timeout: float = 30.0
    """Seconds that `stop` waits for running handlers."""
    local_offsets: str | os.PathLike[str] | None = None
    """Broadcasting: where offsets are kept; None: ~/.rocketmq_offsets."""
    broadcast_from_newest: bool = False
    """Broadcasting: no offset is kept, what came while it was stopped is skipped."""

    def __post_init__(self) -> None:
        check_types(self)
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
