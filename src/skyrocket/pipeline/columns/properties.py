"""Property blocks of many records at once: maps for all, and single properties by name.

A block is `name 1 value 2 name 1 value 2 …`. All blocks stand joined, and the bytes 1 and 2 of the whole are found
together. Where they alternate, names and values are the alternating slices between them. Some releases leave out the
last 2 of a block: there one is assumed. A record that breaks the alternation, has an empty name or value, or a name
twice, is decoded by the reference rules (`format.properties`), one by one.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyrocket.format.properties import decode_properties
from skyrocket.pipeline.columns.parts import Bools, Int64s
from skyrocket.pipeline.columns.slices import as_text, as_text_or_none, in_row_order, scattered, slices

Int32s = NDArray[np.int32]
MAP = pa.map_(pa.string(), pa.string())
_ALL = slice(None)
_MOST_BITS = 31  # sums of so many different bits cannot overflow


@dataclass(frozen=True)
class _Regular:
    """Blocks whose separators alternate: name and value slices of the joined text."""

    data: pa.Buffer
    name_starts: Int64s
    name_ends: Int64s
    value_ends: Int64s
    firsts: Int64s  # number of the first property of each block, and the number of all

    @cached_property
    def same_names(self) -> list[bytes] | None:
        """The names of a block when all blocks have the same in the same order, as those of one producer mostly do."""
        count = len(self.firsts) - 1
        width = int(self.firsts[1]) if count else 0
        if not width or len(self.name_starts) != count * width or (np.diff(self.firsts) != width).any():
            return None
        lengths = (self.name_ends - self.name_starts).reshape(count, width)
        if (lengths != lengths[0]).any():
            return None
        starts = self.name_starts.reshape(count, width)
        text = np.frombuffer(self.data, dtype=np.uint8)
        for column, length in enumerate(lengths[0].tolist()):
            overlaid = np.ndarray((len(text) - length + 1,), f"S{length}", text, 0, strides=(1,))
            names = overlaid[starts[:, column]]
            if (names != names[0]).any():
                return None
        return [bytes(text[start : start + size]) for start, size in zip(starts[0], lengths[0], strict=True)]

    @cached_property
    def names(self) -> pa.BinaryArray:
        if self.same_names is not None:
            numbers = np.tile(np.arange(len(self.same_names), dtype=np.int32), len(self.firsts) - 1)
            return pa.array(self.same_names, pa.binary()).take(pa.array(numbers))
        return slices(self.data, self.name_starts, self.name_ends - self.name_starts)

    @cached_property
    def encoded_names(self) -> pa.DictionaryArray:
        return self.names.dictionary_encode()

    @cached_property
    def codes(self) -> Int32s:
        codes: Int32s = self.encoded_names.indices.to_numpy()
        return codes

    @cached_property
    def rows(self) -> Int64s:
        """The row of each property."""
        return np.repeat(np.arange(len(self.firsts) - 1), np.diff(self.firsts))

    def values(self, chosen: Int64s | slice = _ALL) -> pa.BinaryArray:
        starts, ends = self.name_ends[chosen] + 1, self.value_ends[chosen]
        return slices(self.data, starts, ends - starts)

    def map(self) -> pa.MapArray:
        offsets = pa.array(self.firsts.astype(np.int32))
        return pa.MapArray.from_arrays(offsets, as_text(self.names), as_text(self.values()))

    def column(self, name: bytes) -> pa.StringArray:
        count = len(self.firsts) - 1
        if self.same_names is not None:
            if name not in self.same_names:
                return pa.nulls(count, pa.string())
            place = self.same_names.index(name)
            return as_text(self.values(slice(place, None, len(self.same_names))))
        code = pc.index(self.encoded_names.dictionary, pa.scalar(name, pa.binary())).as_py()
        if code < 0:
            return pa.nulls(count, pa.string())
        chosen = np.flatnonzero(self.codes == code)
        return scattered(count, self.rows[chosen], as_text(self.values(chosen)))

    def repeats(self) -> Bools:
        """Which rows have a name twice; or one that is no text, and may become equal to another when it is made one."""
        count = len(self.firsts) - 1
        repeated = np.zeros(count, dtype=np.bool_)
        if not len(self.name_starts):
            return repeated
        if self.same_names is not None:
            names = pa.array(self.same_names, pa.binary())
            repeated[:] = len(set(self.same_names)) < len(self.same_names) or bool(_no_texts(names).any())
            return repeated
        broken = _no_texts(self.encoded_names.dictionary)
        if broken.any():
            repeated[self.rows[broken[self.codes]]] = True
            return repeated
        filled = np.diff(self.firsts) > 0
        starts = self.firsts[:-1][filled]
        if len(self.encoded_names.dictionary) <= _MOST_BITS:
            bits = np.left_shift(1, self.codes.astype(np.int64))
            repeated[filled] = np.add.reduceat(bits, starts) != np.bitwise_or.reduceat(bits, starts)
            return repeated
        places = np.sort(self.rows * len(self.encoded_names.dictionary) + self.codes)
        twice = places[1:][places[1:] == places[:-1]]
        repeated[twice // len(self.encoded_names.dictionary)] = True
        return repeated


class PropertyBlocks:
    """The properties of a batch of records."""

    def __init__(self, raw: pa.BinaryArray) -> None:
        rows = np.arange(len(raw))
        while True:  # what is odd in several ways shows them one after the other: four rounds at most
            regular, odd = _parse(raw if len(rows) == len(raw) else raw.take(pa.array(rows)))
            if not odd.any():
                odd = regular.repeats()
            if not odd.any():
                break
            rows = rows[~odd]
        self._regular = regular
        self._rows = rows
        self._odd_rows = np.setdiff1d(np.arange(len(raw)), rows, assume_unique=True)
        self._odd = [decode_properties(block) for block in raw.take(pa.array(self._odd_rows)).to_pylist()]

    def map(self) -> pa.MapArray:
        """All properties."""
        if not self._odd:
            return self._regular.map()
        odd = pa.array([list(properties.items()) for properties in self._odd], MAP)
        return in_row_order([self._rows, self._odd_rows], [self._regular.map(), odd])

    def column(self, name: str) -> pa.StringArray:
        """One property; null where a record has none."""
        column = self._regular.column(name.encode())
        if not self._odd:
            return column
        odd = pa.array([properties.get(name) for properties in self._odd], pa.string())
        return in_row_order([self._rows, self._odd_rows], [column, odd])


def _parse(raw: pa.BinaryArray) -> tuple[_Regular, Bools]:
    """Names and values of all blocks, and which blocks are odd; with odd ones among them the slices mean nothing."""
    count = len(raw)
    _, offset_buffer, data = raw.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[raw.offset : raw.offset + count + 1].astype(np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    begin, end = (int(offsets[0]), int(offsets[-1])) if count else (0, 0)
    text = np.frombuffer(data, dtype=np.uint8)[begin:end] if end > begin else np.empty(0, dtype=np.uint8)
    separators = np.flatnonzero((text - np.uint8(1)) < 2)
    are_ends = text[separators] == 2
    separators = separators + begin

    unclosed = np.flatnonzero((ends > starts) & (_last_bytes(text, begin, starts, ends) != 2))
    virtual = np.zeros(len(separators), dtype=np.bool_)
    if len(unclosed):
        # The byte at a block's end is the next block's first: what is assumed goes before a separator found there.
        places = np.searchsorted(separators, ends[unclosed], side="left")
        separators = np.insert(separators, places, ends[unclosed])
        are_ends = np.insert(are_ends, places, True)
        virtual = np.insert(virtual, places, True)

    per_block = _separators_per_block(separators, virtual, starts, ends)
    odd = _broken_alternation(are_ends, per_block)
    if odd.any():
        nothing = np.empty(0, dtype=np.int64)
        return _Regular(pa.py_buffer(b""), nothing, nothing, nothing, np.zeros(1, dtype=np.int64)), odd
    name_ends, value_ends = separators[0::2], separators[1::2]
    name_starts = np.empty_like(name_ends)
    if len(name_ends):
        name_starts[0] = begin
        name_starts[1:] = value_ends[:-1] + ~virtual[1:-1:2]
    firsts = np.concatenate([[0], np.cumsum(per_block // 2)])
    empty = (name_ends == name_starts) | (value_ends == name_ends + 1)
    if empty.any():
        odd[np.searchsorted(firsts, np.flatnonzero(empty), side="right") - 1] = True
    return _Regular(data or pa.py_buffer(b""), name_starts, name_ends, value_ends, firsts), odd


def _no_texts(values: pa.BinaryArray) -> Bools:
    if as_text_or_none(values) is not None:
        return np.zeros(len(values), dtype=np.bool_)
    return np.array([as_text_or_none(values.slice(number, 1)) is None for number in range(len(values))])


def _last_bytes(text: "np.ndarray[tuple[int], np.dtype[np.uint8]]", begin: int, starts: Int64s, ends: Int64s) -> Int64s:
    if not len(text):
        return np.full(len(ends), 2, dtype=np.int64)
    return text[np.maximum(ends - 1 - begin, 0)].astype(np.int64)


def _separators_per_block(separators: Int64s, virtual: Bools, starts: Int64s, ends: Int64s) -> Int64s:
    # An assumed end counts for the block before its place, a real separator there for the block that begins.
    places = separators * 2 - virtual
    borders = np.searchsorted(places, np.concatenate([starts[:1], ends]) * 2, side="left")
    return np.diff(borders)


def _broken_alternation(are_ends: Bools, per_block: Int64s) -> Bools:
    if not are_ends[0::2].any() and are_ends[1::2].all() and not (per_block & 1).any():
        return np.zeros(len(per_block), dtype=np.bool_)
    odd: Bools = per_block % 2 == 1
    firsts = np.cumsum(per_block) - per_block
    within = np.arange(len(are_ends)) - np.repeat(firsts, per_block)
    wrong = np.flatnonzero(are_ends != (within % 2 == 1))
    odd[np.searchsorted(firsts + per_block, wrong, side="right")] = True
    return odd
