"""Rows made into the bodies of batch requests: one Arrow array has all elements, a request is a slice of its buffer.

element = size, 0, 0, flag, body length  (5 × 4 bytes) │ body │ properties length (2 bytes) │ properties
"""

import itertools
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyrocket.client.sending.queue_selector import index_by_hash
from skyrocket.pipeline.topic_sink.identity import Ids, fixed, offsets_of, unique_keys
from skyrocket.pipeline.topic_sink.input_columns import InputError
from skyrocket.pipeline.topic_sink.rows import TopicRows

_HEAD_SIZE: Final = 20
_AROUND: Final = _HEAD_SIZE + 2
ANY_QUEUE: Final = -1


@dataclass(slots=True)
class Request:
    """The body of one batch send; its ids are those of its rows, in order."""

    body: memoryview
    ids: Ids
    element_ends: npt.NDArray[np.int64]  # in the body

    def __len__(self) -> int:
        return len(self.ids)

    def without(self, stored: npt.NDArray[np.bool_]) -> "Request":
        """The rows that are not stored yet."""
        begins = np.concatenate(([0], self.element_ends[:-1]))
        kept = np.flatnonzero(~stored)
        parts = [self.body[begins[index] : self.element_ends[index]] for index in kept]
        sizes = (self.element_ends - begins)[kept]
        return Request(memoryview(b"".join(parts)), self.ids[kept], np.cumsum(sizes))


class Addressed(NamedTuple):
    """A request and the index of the queue it is for."""

    queue: int
    request: Request


def elements(rows: TopicRows, ids: Ids) -> "pa.BinaryArray":
    """Each row as an element of a batch."""
    count = len(rows)
    properties = pc.binary_join_element_wise(
        b"UNIQ_KEY\x01", unique_keys(ids), b"\x02WAIT\x01true\x02", rows.properties, b""
    )
    body_sizes = pc.binary_length(rows.body).to_numpy(zero_copy_only=False)
    property_sizes = pc.binary_length(properties).to_numpy(zero_copy_only=False)
    heads = np.zeros((count, 5), ">i4")
    heads[:, 0] = body_sizes + property_sizes + _AROUND
    heads[:, 4] = body_sizes
    return pc.binary_join_element_wise(
        fixed(heads.tobytes(), _HEAD_SIZE), rows.body, fixed(property_sizes.astype(">u2").tobytes(), 2), properties, b""
    )


def queue_indices(rows: TopicRows, queue_ids: list[int], partition: int) -> npt.NDArray[np.int64]:
    """The index of each row's queue among the topic's: by its queueId, by its sharding key as Java does, or any.

    Raises InputError for a queueId that the topic does not have.
    """
    count = len(queue_ids)
    chosen = np.full(len(rows), ANY_QUEUE, np.int64)
    if rows.sharding_keys is not None:
        coded = pc.if_else(pc.equal(rows.sharding_keys, ""), None, rows.sharding_keys).dictionary_encode()
        codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
        indices = [index_by_hash(key, count) for key in coded.dictionary.to_pylist()]
        table = np.array([*indices, ANY_QUEUE], np.int64)  # the last one is for rows without a key
        chosen = table[codes]
    given = rows.queue_ids >= 0
    if given.any():
        index_of = {queue_id: index for index, queue_id in reversed(list(enumerate(queue_ids)))}
        for queue_id in np.unique(rows.queue_ids[given]).tolist():
            same = rows.queue_ids == queue_id
            if queue_id not in index_of:
                row = int(rows.numbers[np.flatnonzero(same)[0]])
                raise InputError(
                    f"row {row} of partition {partition} has queueId {queue_id}; topic {rows.topic} has the queues "
                    f"{sorted(index_of)}"
                )
            chosen[same] = index_of[queue_id]
    return chosen


def requests(rows: TopicRows, ids: Ids, queues: npt.NDArray[np.int64], most_bytes: int) -> list[Addressed]:
    """All rows in requests of at most `most_bytes` (a larger row stands alone), in row order for each queue."""
    if len(rows) == 0:
        return []
    order = np.argsort(queues, kind="stable")
    if not np.array_equal(order, np.arange(len(order))):
        rows, ids, queues = rows.take(order), ids[order], queues[order]
    encoded = elements(rows, ids)
    ends = offsets_of(encoded).astype(np.int64)
    data = memoryview(encoded.buffers()[2])
    made: list[Addressed] = []
    borders = [0, *(np.flatnonzero(np.diff(queues)) + 1).tolist(), len(queues)]
    for first, last in itertools.pairwise(borders):
        begin = first
        while begin < last:
            end = int(np.searchsorted(ends, ends[begin] + most_bytes, side="right")) - 1
            end = min(max(end, begin + 1), last)
            body = data[ends[begin] : ends[end]]
            request = Request(body, ids[begin:end], ends[begin + 1 : end + 1] - ends[begin])
            made.append(Addressed(int(queues[begin]), request))
            begin = end
    return made
