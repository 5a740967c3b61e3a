"""How far the next micro-batch goes, and offset ranges → tasks. Pure, and the same for the same arguments.

A trigger's share is split over queues in proportion to their backlog, at least one message each, so that no queue
starves and all reach the present at the same time. Of the ranges big ones are cut, small ones joined.

Cutting and joining never decide what is read, only who reads it: after a restart a batch may be planned for other
cores.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from skyrocket.client.consumer.queue_ranges import QueueRange
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_source.offsets import Bounds, Offsets

JOINED = 16_384  # messages that one task may gather from several queues: less is not worth a task


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


def ranges_of(start: Mapping[MessageQueue, int], end: Mapping[MessageQueue, int]) -> list[QueueRange]:
    """What lies between, queue by queue; nothing for a queue that did not move."""
    return [
        QueueRange(queue, start[queue], end[queue])
        for queue in sorted(end)
        if queue in start and end[queue] > start[queue]
    ]


def tasks_of(
    ranges: Sequence[QueueRange], least_tasks: int | None = None, most_records: int | None = None
) -> list[tuple[QueueRange, ...]]:
    """The ranges of each task, in the order of queues and offsets."""
    pieces = [piece for whole in ranges for piece in _cut(whole, -(-_size(whole) // (most_records or _size(whole))))]
    if least_tasks is not None and len(pieces) < least_tasks:
        pieces = _cut_by_share(pieces, least_tasks)
    room = min(JOINED, most_records or JOINED)
    if least_tasks is not None:
        room = min(room, max(sum(map(_size, pieces)) // least_tasks, 1))
    return _joined(pieces, room)


def _size(piece: QueueRange) -> int:
    return piece.end - piece.begin


def _cut(whole: QueueRange, count: int) -> list[QueueRange]:
    size = _size(whole)
    marks = [whole.begin + size * number // count for number in range(count + 1)]
    return [QueueRange(whole.queue, begin, end) for begin, end in pairwise(marks)]


def _cut_by_share(pieces: Sequence[QueueRange], least_tasks: int) -> list[QueueRange]:
    total = sum(map(_size, pieces))
    return [
        part
        for piece in pieces
        for part in _cut(piece, min(_size(piece), max(1, -(-_size(piece) * least_tasks // total))))
    ]


def _joined(pieces: Sequence[QueueRange], room: int) -> list[tuple[QueueRange, ...]]:
    tasks: list[list[QueueRange]] = []
    filled = room
    for piece in pieces:
        size = _size(piece)
        if tasks and filled + size <= room:
            tasks[-1].append(piece)
            filled += size
        else:
            tasks.append([piece])
            filled = size
    return [tuple(task) for task in tasks]
