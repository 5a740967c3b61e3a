"""Data that should be there and is not: found out by comparing offsets with what the queues hold.

`failOnDataLoss=true` makes each of these an error; otherwise reading goes on with what is left, and says how much is
gone.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from skyrocket.client.consumer.queue_ranges import QueueRange
from skyrocket.errors import DataError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_source.offsets import Bounds, Offsets

_logger = logging.getLogger(__name__)

_SHOWN: Final = 5


class Loss(NamedTuple):
    """Offsets that cannot be read, and why."""

    offsets: QueueRange
    why: str

    def __str__(self) -> str:
        return f"{self.offsets}: {self.why}"


class DataLost(DataError):
    """What `failOnDataLoss` fails with."""

    def __init__(self, losses: Sequence[Loss]) -> None:
        self.losses = tuple(losses)
        count = sum(loss.offsets.end - loss.offsets.begin for loss in losses)
        shown = "; ".join(map(str, losses[:_SHOWN])) + (f"; and {len(losses) - _SHOWN} more" if losses[_SHOWN:] else "")
        super().__init__(
            f"{count} offsets are lost: {shown}. Messages were deleted by retention, a topic was made anew, or a "
            'broker lost its newest messages. To go on without them: .option("failOnDataLoss", "false")'
        )


def losses_of(start: Mapping[MessageQueue, int], bounds: Mapping[MessageQueue, Bounds]) -> list[Loss]:
    """What is gone below or above what the queues hold."""
    found = []
    for queue, offset in sorted(start.items()):
        if queue not in bounds:
            continue
        low, high = bounds[queue]
        if offset < low:
            found.append(Loss(QueueRange(queue, offset, low), f"the queue now begins at offset {low}"))
        elif offset > high:
            why = f"the queue ends at offset {high}, before what was already read"
            found.append(Loss(QueueRange(queue, high, offset), why))
    return found


def beyond_the_end(end: Mapping[MessageQueue, int], bounds: Mapping[MessageQueue, Bounds]) -> list[Loss]:
    """Ends that the queues have not reached, or do not reach any more."""
    return [
        Loss(QueueRange(queue, bounds[queue].high, offset), f"the queue ends at offset {bounds[queue].high}")
        for queue, offset in sorted(end.items())
        if queue in bounds and offset > bounds[queue].high
    ]


def clamped(offsets: Mapping[MessageQueue, int], bounds: Mapping[MessageQueue, Bounds]) -> Offsets:
    """Inside of what the queues hold."""
    return {
        queue: min(max(offset, bounds[queue].low), bounds[queue].high) if queue in bounds else offset
        for queue, offset in offsets.items()
    }


def decide(losses: Sequence[Loss], *, fails: bool) -> None:
    """Raise DataLost, or say it and go on."""
    if losses and fails:
        raise DataLost(losses)
    for loss in losses:
        count = loss.offsets.end - loss.offsets.begin
        _logger.warning("offsets are lost, going on without them count=%d where=%s", count, loss)
