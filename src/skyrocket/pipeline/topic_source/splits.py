"""Offset ranges → tasks: big ranges are cut, small ones joined. Pure, and the same for the same arguments.

Cutting and joining never decide what is read, only who reads it: after a restart a batch may be planned for other
cores.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from skyrocket.client.consumer.queue_ranges import QueueRange
from skyrocket.model.message_queue import MessageQueue

JOINED = 16_384  # messages that one task may gather from several queues: less is not worth a task


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
