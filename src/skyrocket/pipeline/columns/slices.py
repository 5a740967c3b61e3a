"""Arrow columns out of slices of one buffer, without a loop over the slices.

A binary array's offsets are `[start0, end0, start1, end1, …]`: value, gap, value, gap. Taking the even elements copies
all values in one C loop. Slices must ascend and not overlap.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from skyrocket.pipeline.columns.parts import Int64s


def slices(data: pa.Buffer, starts: Int64s, lengths: Int64s) -> pa.BinaryArray:
    """The bytes of each slice."""
    count = len(starts)
    if count == 0:
        return pa.array([], pa.binary())
    first = int(starts[0])  # offsets have 32 bits: they count from the batch, not from the file
    offsets = np.empty(2 * count, dtype=np.int32)
    begins = starts - first
    offsets[0::2] = begins
    offsets[1::2] = begins + lengths
    mixed = pa.BinaryArray.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(offsets), data.slice(first)])
    return mixed.take(pa.array(np.arange(0, 2 * count - 1, 2, dtype=np.int32)))


def as_text(values: pa.BinaryArray) -> pa.StringArray:
    """Bytes as text; what is no UTF-8 is replaced as the reference decoder does, and Spark never sees broken text."""
    texts = as_text_or_none(values)
    if texts is not None:
        return texts
    replaced = [None if value is None else value.decode("utf-8", "replace") for value in values.to_pylist()]
    return pa.array(replaced, pa.string())


def as_text_or_none(values: pa.BinaryArray) -> pa.StringArray | None:
    """Bytes as text without a copy; None when any of them is no UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return None


def few_texts(values: pa.BinaryArray) -> pa.StringArray:
    """As `as_text`, for columns of few different values, such as topics."""
    encoded = values.dictionary_encode()
    return as_text(encoded.dictionary).take(encoded.indices)


def few_different(
    raw: "np.ndarray[tuple[int, ...], np.dtype[np.void]]", text: Callable[[bytes], str]
) -> pa.StringArray:
    """A text per fixed-width value, worked out once for each different value."""
    width = raw.dtype.itemsize
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(raw), [None, pa.py_buffer(np.ascontiguousarray(raw))]
    )
    encoded = fixed.dictionary_encode()
    texts = pa.array([text(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)


def in_row_order(rows: list[Int64s], pieces: list[pa.Array]) -> pa.Array:
    """One array from pieces that were made for different rows."""
    if len(pieces) == 1:
        return pieces[0]
    order = np.argsort(np.concatenate(rows), kind="stable")
    return pa.concat_arrays(pieces).take(pa.array(order))


def scattered(count: int, rows: Int64s, values: pa.Array) -> pa.Array:
    """A column of `count` rows that has values in these (ascending) rows and nulls elsewhere."""
    if len(rows) == count:
        return values
    indices = np.zeros(count, dtype=np.int32)
    indices[rows] = np.arange(len(rows), dtype=np.int32)
    missing = np.ones(count, dtype=np.bool_)
    missing[rows] = False
    return values.take(pa.array(indices, mask=missing))
