"""How lite pull consumers fetch and commit; times are in seconds, names are RocketMQ's in Python's spelling."""

from dataclasses import dataclass, field
from datetime import datetime

from skyrocket.client.consumer.allocation import AllocationStrategy, Averagely
from skyrocket.client.consumer.start_position import ConsumeFromWhere, MessageModel
from skyrocket.client.core.setting_types import check_types


@dataclass(frozen=True, slots=True)
class LitePullSettings:
    """How lite pull consumers fetch and commit. Defaults are RocketMQ's, but for one; times are in seconds."""

    message_model: MessageModel = MessageModel.CLUSTERING
    """CLUSTERING: members share the queues; BROADCASTING: each has all."""
    consume_from: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    """Where a group without offsets begins: last, first, or a moment."""
    consume_timestamp: datetime | str | None = None
    """The moment for CONSUME_FROM_TIMESTAMP; None: half an hour ago."""
    new_group_from_zero: bool = True
    """RocketMQ: a new group gets all of a young topic, whatever consume_from says."""
    strategy: AllocationStrategy = field(default_factory=Averagely)
    """How members share queues; all members of a group must use the same."""
    auto_commit: bool = True
    """Commit what was polled with a later poll; False: by `commit()` alone."""
    auto_commit_interval: float = 5.0
    """Seconds between two of these commits."""
    poll_timeout: float = 5.0
    """Seconds that `poll` waits for messages unless it is told otherwise."""
    pull_batch_size: int = 32
    """Messages that one pull may bring; RocketMQ: 10. Brokers give at most 32 unless they are told otherwise."""
    pull_threshold_for_all: int = 10_000
    """Pulling pauses when so many messages wait to be polled."""
    pull_threshold_for_queue: int = 1000
    """The same for one queue."""
    pull_threshold_size_for_queue: int = 100
    """The same in MiB."""
    consume_max_span: int = 2000
    """Pulling pauses when the first and the last message that waits are farther apart."""
    broker_suspend_max: float = 20.0
    """Seconds that a broker may hold a pull that finds nothing."""
    pull_timeout: float = 30.0
    """Seconds for the answer to a pull."""
    persist_interval: float = 5.0
    """Seconds between two reports of progress to the brokers."""

    def __post_init__(self) -> None:
        check_types(self)
