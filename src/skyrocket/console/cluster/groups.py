"""Groups as the cluster has them: how much waits for each, for how long, and who is there to take it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skyrocket.client.admin.offset_admin import QueueLag
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """How far a group is over all queues."""

    topics: tuple[str, ...]
    lag: int
    late_ms: int | None  # for how long the oldest message has waited; None: nothing waits, or not known
    consumed: int  # the sum of its offsets: it grows with what is consumed
    retries: int = 0  # messages of its lag that failed before and are due again


def figures(lags: Sequence[QueueLag], since: Mapping[MessageQueue, int], now_ms: int) -> GroupFigures:
    """Of the queues of a group; those of its retry topic count as waiting, and are not among its topics.

    `since`: when the message that is next in each queue was stored, as far as that is known.
    """
    topics = {lag.queue.topic for lag in lags if not lag.queue.topic.startswith((RETRY_PREFIX, DLQ_PREFIX))}
    waiting = [lag for lag in lags if lag.lag > 0]
    ages = [now_ms - since[lag.queue] for lag in waiting if lag.queue in since]
    return GroupFigures(
        tuple(sorted(topics)),
        sum(lag.lag for lag in waiting),
        max(max(ages), 0) if ages else None,
        sum(max(lag.consumer_offset, 0) for lag in lags),
        sum(lag.lag for lag in waiting if lag.queue.topic.startswith(RETRY_PREFIX)),
    )


def state(*, clients: int | None, lag: int, rate: float | None) -> str:
    """One word for the list: online, lagging, stopped (messages wait and nobody is there), idle, unknown."""
    if clients is None:
        return "unknown"
    if clients == 0:
        return "stopped" if lag > 0 else "idle"
    return "lagging" if lag > 1000 and not rate else "online"
