"""Rows that have their time: `sendAfter` is how many ms after its task began a row may be sent.

Rows with the same time are a portion. Whoever comes late does not catch up: all that follows is as much later, so that
a broker which was away for a minute does not get a minute's messages at once.
"""

import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyrocket.clock import Clock
from skyrocket.pipeline.topic_sink.input_columns import InputColumns


class Pace:
    """The time of one task; it begins now."""

    def __init__(self, clock: Clock, wait: Callable[[float], None] = time.sleep) -> None:
        self._clock = clock
        self._wait = wait
        self._began = clock.monotonic()

    def reach(self, after_s: float) -> None:
        """Wait until this many seconds after the beginning."""
        due = self._began + after_s
        self._wait(max(0.0, due - self._clock.monotonic()))
        self._began += max(0.0, self._clock.monotonic() - due)


def paced(
    batches: "Iterator[pa.RecordBatch]", columns: InputColumns, pace: Pace, confirmed: Callable[[], None]
) -> "Iterator[pa.RecordBatch]":
    """Batches as they come; with `sendAfter` a portion each, when its time is there and the one before is confirmed."""
    if not columns.has("sendAfter"):
        yield from batches
        return
    for batch in batches:
        times_ms = pc.fill_null(batch.column(columns.names["sendAfter"]).cast(pa.int64()), 0).to_numpy()
        edges = [*np.flatnonzero(np.diff(times_ms, prepend=times_ms[:1] - 1)).tolist(), len(batch)]
        for begin, end in pairwise(edges):
            confirmed()
            pace.reach(times_ms[begin] / 1000)
            yield batch.slice(begin, end - begin)
