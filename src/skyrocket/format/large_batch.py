"""Batches of any size, the large ones cut by numpy; `batch` has the layout.

4 MB can be 180,000 messages, and a broker serves nobody else while it cuts them. numpy is no part of the light client,
whose batches are cut by `batch` alone.
"""

from struct import Struct
from typing import Final

import numpy as np

from skyrocket.format.batch import (
    BODY_AT,
    ELEMENT_FRAME_SIZE,
    FLAG_AT,
    Batch,
    BatchColumns,
    cut_batch,
    even_batch,
)
from skyrocket.format.dtypes import gathered
from skyrocket.format.properties import MAX_BYTES

LARGE_FROM: Final = 64 << 10  # batches of so many bytes may have thousands of elements

_SIZE: Final = Struct(">i")
_HEAD_DTYPE: Final = np.dtype(
    {"names": ["flag", "body_length"], "formats": [">i4", ">i4"], "offsets": [FLAG_AT, 16], "itemsize": BODY_AT}
)
_LENGTH_DTYPE: Final = np.dtype(">u2")  # RocketMQ reads a signed short: the highest bit never fits


def batch_of(data: bytes) -> Batch:
    """The batch that takes the least time to cut: uneven ones are cut. Raises DataError where it is broken."""
    return even_batch(data) or columns_of(data)


def columns_of(data: bytes) -> BatchColumns:
    """What `cut_batch` gives."""
    return (_cut_large(data) if len(data) >= LARGE_FROM else None) or cut_batch(data)


def _cut_large(data: bytes) -> BatchColumns | None:
    """The same for many elements; None where the batch is broken."""
    starts: list[int] = []
    append, unpack_size = starts.append, _SIZE.unpack_from
    end, position = len(data), 0
    while position <= end - ELEMENT_FRAME_SIZE:
        append(position)
        (size,) = unpack_size(data, position)
        if size < ELEMENT_FRAME_SIZE:
            return None
        position += size
    if position != end:
        return None
    at = np.array(starts)
    sizes = np.diff(at, append=end)
    heads = gathered(data, _HEAD_DTYPE, at)
    lengths = heads["body_length"].astype(np.int64)
    if (lengths < 0).any() or (lengths > sizes - ELEMENT_FRAME_SIZE).any():
        return None
    bodies_at = at + BODY_AT
    behind = bodies_at + lengths
    text_lengths = gathered(data, _LENGTH_DTYPE, behind)
    if (text_lengths != sizes - ELEMENT_FRAME_SIZE - lengths).any() or (text_lengths > MAX_BYTES).any():
        return None
    edges = behind.tolist()
    followings = [*starts[1:], end]
    return BatchColumns(
        sizes.tolist(),
        heads["flag"].tolist(),
        lengths.tolist(),
        [data[a:b] for a, b in zip(bodies_at.tolist(), edges, strict=True)],
        [data[a + 2 : b] for a, b in zip(edges, followings, strict=True)],
        None,
        [data[a:b] for a, b in zip(edges, followings, strict=True)],
    )
