"""Rows that may go to any queue: as many to each queue, and to each broker, as to any other.

Of each Arrow batch every queue gets one run of neighbours, so a request holds as many rows as it can, and one row more
goes to those queues whose turn it is: after any number of batches no queue is more than one row ahead of another.
Tasks of one write begin at different queues, and queues stand so that neighbours are of different brokers: small writes
reach all brokers too.
"""

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_sink.requests import ANY_QUEUE


class Spread:
    """Whose turn it is, for one task and one topic."""

    def __init__(self, queues: Sequence[MessageQueue], first: int) -> None:
        by_turn = sorted(range(len(queues)), key=lambda index: (queues[index].queue_id, queues[index].broker_name))
        self._order = np.array(by_turn, np.int64)
        self._next = first % len(by_turn)

    def chosen(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The indices of rows' queues, with one for each row that had none."""
        free = np.flatnonzero(indices == ANY_QUEUE)
        if not len(free):
            return indices
        count = len(self._order)
        each, more = divmod(len(free), count)
        sizes = np.full(count, each, np.int64)
        sizes[:more] += 1
        given = indices.copy()
        given[free] = np.repeat(np.roll(self._order, -self._next), sizes)
        self._next = (self._next + more) % count
        return given


def first_turn(write: str, partition: int) -> int:
    """Where a task of a write begins: the tasks one after the other, each write somewhere else."""
    return zlib.crc32(write.encode()) + partition
