"""How far the next micro-batch goes: pure functions over offsets.

A trigger's share is split over queues in proportion to their backlog, at least one message each, so that no queue
starves and all reach the present at the same time.
"""

from collections.abc import Mapping

from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_source.offsets import Bounds, Offsets


def started(start: Mapping[MessageQueue, int], bounds: Mapping[MessageQueue, Bounds]) -> Offsets:
    """Where a batch begins: as before; a queue that appeared since begins at its first message."""
    return dict(start) | {queue: bound.low for queue, bound in bounds.items() if queue not in start}


def heads(start: Mapping[MessageQueue, int], bounds: Mapping[MessageQueue, Bounds]) -> Offsets:
    """How far a batch could go; a queue that vanished (its broker is away) stays where it is."""
    return dict(start) | {queue: bound.high for queue, bound in bounds.items()}


def backlog(start: Mapping[MessageQueue, int], end: Mapping[MessageQueue, int]) -> int:
    """How many messages lie between."""
    return sum(max(end[queue] - start.get(queue, end[queue]), 0) for queue in end)


def limited(start: Offsets, end: Offsets, most: int) -> Offsets:
    """An end that is at most this many messages away, but at least one for each queue that has any."""
    waiting = {queue: end[queue] - start.get(queue, end[queue]) for queue in end}
    total = sum(count for count in waiting.values() if count > 0)
    if total <= most:
        return dict(end)
    return {
        queue: end[queue] if count <= 0 else end[queue] - count + min(count, max(1, count * most // total))
        for queue, count in waiting.items()
    }


def capped(end: Mapping[MessageQueue, int], target: Mapping[MessageQueue, int]) -> Offsets:
    """Never beyond the target of an AvailableNow run; queues that came later do not count."""
    return {queue: min(offset, target[queue]) for queue, offset in end.items() if queue in target}
