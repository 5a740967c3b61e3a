"""How lite pull consumers fetch and commit."""

from dataclasses import dataclass, field
from datetime import datetime

from skyrocket.client.consumer.allocation import AllocationStrategy, Averagely
from skyrocket.client.consumer.start_position import ConsumeFromWhere, MessageModel


@dataclass(frozen=True, slots=True)
class LitePullSettings:
    """Defaults are RocketMQ's; times are in seconds."""

    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp: datetime | str | None = None
    new_group_from_zero: bool = True
    strategy: AllocationStrategy = field(default_factory=Averagely)
    auto_commit: bool = True
    auto_commit_interval: float = 5.0
    poll_timeout: float = 5.0
    pull_batch_size: int = 10
    pull_threshold_for_all: int = 10_000
    pull_threshold_for_queue: int = 1000
    pull_threshold_size_for_queue: int = 100  # MiB
    consume_max_span: int = 2000
    broker_suspend_max: float = 20.0
    pull_timeout: float = 30.0
    persist_interval: float = 5.0
