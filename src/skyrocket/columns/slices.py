"""Arrow columns out of slices of one buffer, without a loop over the slices.

A binary array's offsets are `[start0, end0, start1, end1, …]`: value, gap, value, gap. Taking the even elements copies
all values in one C loop. Slices must ascend and not overlap.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyrocket.format.dtypes import AnyPositions, Bools, Int64s

BINARY = pa.binary()
TEXT = pa.string()
_TAKE = pc.get_function("array_take")  # half of what `Array.take` costs small batches is the way there


def slices(
    data: pa.Buffer,
    starts: AnyPositions,
    lengths: AnyPositions,
    kind: pa.DataType = BINARY,
    present: Bools | None = None,
) -> pa.Array:
    """The bytes of each slice, or its text (the caller has checked that it is). Null where not present."""
    count = len(starts)
    if count == 0:
        return pa.array([], kind)
    first = int(starts[0])  # offsets have 32 bits: they count from the batch, not from the file
    offsets = np.empty(2 * count, dtype=np.int32)
    begins = offsets[0::2]
    np.subtract(starts, first, out=begins, casting="unsafe")
    np.add(begins, lengths, out=offsets[1::2], casting="unsafe")
    mixed = pa.Array.from_buffers(kind, 2 * count - 1, [None, pa.py_buffer(offsets), data.slice(first)])
    taken = _TAKE.call([mixed, _even_numbers(count)])
    if present is None:
        return taken
    bits = pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(kind, count, [bits, *taken.buffers()[1:]])


@lru_cache(maxsize=64)
def _even_numbers(count: int) -> pa.Array:
    return pa.array(np.arange(0, 2 * count, 2, dtype=np.int32))


def as_text(values: pa.BinaryArray) -> pa.StringArray:
    """Bytes as text; what is not UTF-8 is replaced as the reference decoder does, and Spark never sees broken text."""
    texts = as_text_or_none(values)
    if texts is not None:
        return texts
    replaced = [None if value is None else value.decode("utf-8", "replace") for value in values.to_pylist()]
    return pa.array(replaced, pa.string())


def as_text_or_none(values: pa.BinaryArray) -> pa.StringArray | None:
    """Bytes as text without a copy; None when any of them is not UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return None


def few_texts(values: pa.BinaryArray) -> pa.StringArray:
    """As `as_text`, for columns of few different values, such as topics."""
    encoded = values.dictionary_encode()
    return as_text(encoded.dictionary).take(encoded.indices)


def few_different(raw: NDArray[np.void], text: Callable[[bytes], str]) -> pa.StringArray:
    """A text per fixed-width value, worked out once for each different value."""
    width = raw.dtype.itemsize
    joined = np.ascontiguousarray(raw)
    words = joined.view(np.uint32).reshape(len(joined), -1)
    if (words == words[0]).all():  # the store host of a log nearly always
        return pa.repeat(pa.scalar(text(joined[0].tobytes()), pa.string()), len(joined))
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(joined), [None, pa.py_buffer(joined)])
    encoded = fixed.dictionary_encode()
    texts = pa.array([text(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)


def in_row_order(rows: list[Int64s], pieces: list[pa.Array]) -> pa.Array:
    """One array from pieces that were made for different rows."""
    if len(pieces) == 1:
        return pieces[0]
    order = np.argsort(np.concatenate(rows), kind="stable")
    return pa.concat_arrays(pieces).take(pa.array(order))
