"""Property blocks of many records at once: maps for all, and single properties by name.

A block is `name 1 value 2 name 1 value 2 …`. All blocks stand joined, and the bytes 1 and 2 of the whole are found
together. Where they alternate, names and values are the alternating slices between them. Some releases leave out the
last 2 of a block: there one is assumed. A record that breaks the alternation, has an empty name or value, or a name
twice, is decoded by the reference rules (`format.properties`), one by one.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyrocket.columns.slices import BINARY, TEXT, as_text, as_text_or_none, in_row_order, slices
from skyrocket.format.dtypes import Bools, Bytes, Int64s, gathered
from skyrocket.format.properties import decode_properties
from skyrocket.format.text_hashes import Texts

Int32s = NDArray[np.int32]
MAP = pa.map_(pa.string(), pa.string())
_ALL = slice(None)
_WORD = np.dtype(np.uint64)
_MOST_BITS = 31  # sums of this many different bits cannot overflow


@dataclass(frozen=True)
class _Regular:
    """Blocks whose separators alternate: name and value slices of the joined text."""

    data: pa.Buffer
    borders: Int32s  # where each block begins, and where the last one ends
    name_starts: Int32s
    name_ends: Int32s
    value_ends: Int32s
    firsts: Int64s  # number of the first property of each block, and the number of all
    is_text: bool  # all of it is UTF-8, so every part of it is

    @cached_property
    def same_names(self) -> tuple[bytes, ...] | None:
        """The names of a block when all blocks have the same in the same order, as those of one producer mostly do."""
        count = len(self.firsts) - 1
        width = int(self.firsts[1]) if count else 0
        if not width or len(self.name_starts) != count * width or (np.diff(self.firsts) != width).any():
            return None
        starts = self.name_starts.reshape(count, width)
        lengths = self.name_ends.reshape(count, width) - starts
        if (lengths != lengths[0]).any():
            return None
        text = np.frombuffer(self.data, dtype=np.uint8)
        first, last = (_texts(text, starts[row], lengths[0]) for row in (0, -1))
        if first != last or not all(_all_read(text, starts[:-1, at], name) for at, name in enumerate(first)):
            return None
        return first

    @cached_property
    def names(self) -> pa.Array:
        """All names, as text when they are."""
        if self.same_names is not None and self.is_text:
            return _repeated(self.same_names, len(self.firsts) - 1)
        return slices(self.data, self.name_starts, self.name_ends - self.name_starts, self._kind)

    @property
    def _kind(self) -> pa.DataType:
        return TEXT if self.is_text else BINARY

    def _text(self, parts: pa.Array) -> pa.StringArray:
        return parts if self.is_text else as_text(parts)

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

    def values(self, chosen: Int64s | slice = _ALL) -> pa.StringArray:
        starts, ends = self.name_ends[chosen] + 1, self.value_ends[chosen]
        return self._text(slices(self.data, starts, ends - starts, self._kind))

    def map(self) -> pa.MapArray:
        offsets = pa.array(self.firsts.astype(np.int32))
        return pa.MapArray.from_arrays(offsets, self._text(self.names), self.values())

    def column(self, name: bytes) -> pa.StringArray:
        count = len(self.firsts) - 1
        if self.same_names is not None:
            if name not in self.same_names:
                return pa.nulls(count, TEXT)
            place = self.same_names.index(name)
            return self.values(slice(place, None, len(self.same_names)))
        code = pc.index(self.encoded_names.dictionary, pa.scalar(name, self._kind)).as_py()
        if code < 0:
            return pa.nulls(count, TEXT)
        chosen = np.flatnonzero(self.codes == code)
        rows = self.rows[chosen]
        starts, lengths = self.borders[:-1].copy(), np.zeros(count, dtype=np.int32)
        starts[rows] = self.name_ends[chosen] + 1
        lengths[rows] = self.value_ends[chosen] - starts[rows]
        present = np.zeros(count, dtype=np.bool_)
        present[rows] = True
        return self._text(slices(self.data, starts, lengths, self._kind, present))

    def repeats(self) -> Bools:
        """Which rows have a name twice, or one that is not UTF-8 and may become equal to another as text."""
        count = len(self.firsts) - 1
        repeated = np.zeros(count, dtype=np.bool_)
        if not len(self.name_starts):
            return repeated
        if self.same_names is not None:
            repeated[:] = not _are_different_texts(self.same_names)
            return repeated
        if not self.is_text and (broken := _no_texts(self.encoded_names.dictionary)).any():
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


def _without_properties(borders: Int32s) -> _Regular:
    none = np.empty(0, dtype=np.int32)
    return _Regular(pa.py_buffer(b""), borders, none, none, none, np.zeros(len(borders), dtype=np.int64), is_text=True)


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
        self._odd_rows = (
            np.setdiff1d(np.arange(len(raw)), rows, assume_unique=True) if len(rows) < len(raw) else rows[:0]
        )
        self._odd = [decode_properties(raw[row].as_py()) for row in self._odd_rows.tolist()]

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

    def texts(self, name: str) -> Texts:
        """One property of the records that have it, as slices of one text."""
        column = self.column(name)
        records = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        _, offsets, data = column.buffers()
        ends = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
        text = b"" if data is None else data.to_pybytes()
        return Texts(text, ends[:-1][records], ends[1:][records], records)


def _parse(raw: pa.BinaryArray) -> tuple[_Regular, Bools]:
    """Names and values of all blocks, and which blocks are odd; with odd ones among them the slices mean nothing."""
    count = len(raw)
    if not count:
        return _without_properties(np.zeros(1, dtype=np.int32)), np.zeros(0, dtype=np.bool_)
    _, offset_buffer, data = raw.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[raw.offset : raw.offset + count + 1]
    begin, end = int(offsets[0]), int(offsets[-1])
    if begin == end:
        return _without_properties(offsets), np.zeros(count, dtype=np.bool_)
    text = np.frombuffer(data, dtype=np.uint8)[begin:end]
    separators = np.flatnonzero((text - np.uint8(1)) < 2).astype(np.int32)
    are_ends = text[separators] == 2
    separators += begin

    starts, ends = offsets[:-1], offsets[1:]
    unclosed = np.flatnonzero((text[np.maximum(ends - (1 + begin), 0)] != 2) & (ends > starts))
    virtual: Bools | None = None
    if len(unclosed):
        # The byte at a block's end is the next block's first: what is assumed goes before a separator found there.
        places = np.searchsorted(separators, ends[unclosed], side="left")
        separators = np.insert(separators, places, ends[unclosed])
        are_ends = np.insert(are_ends, places, True)
        virtual = np.insert(np.zeros(len(are_ends) - len(places), dtype=np.bool_), places, True)

    per_block = _separators_per_block(separators, virtual, offsets)
    odd = _broken_alternation(are_ends, per_block)
    if odd.any():
        return _without_properties(offsets[:1]), odd
    name_ends, value_ends = separators[0::2], separators[1::2]
    name_starts = np.empty_like(name_ends)
    name_starts[0] = begin
    np.add(value_ends[:-1], 1 if virtual is None else ~virtual[1:-1:2], out=name_starts[1:])
    firsts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(per_block >> 1, out=firsts[1:])
    empty = (name_ends == name_starts) | (value_ends == name_ends + 1)
    if empty.any():
        odd[np.searchsorted(firsts, np.flatnonzero(empty), side="right") - 1] = True
    # Every block ends with a separator, so no letter is divided between two of them.
    is_text = virtual is None and _is_text(data, begin, end)
    return _Regular(data, offsets, name_starts, name_ends, value_ends, firsts, is_text), odd


def _is_text(data: pa.Buffer, begin: int, end: int) -> bool:
    whole = pa.Array.from_buffers(BINARY, 1, [None, pa.py_buffer(np.array([begin, end], dtype=np.int32)), data])
    return as_text_or_none(whole) is not None


def _texts(text: Bytes, starts: Int32s, lengths: Int32s) -> tuple[bytes, ...]:
    return tuple(text[start : start + size].tobytes() for start, size in zip(starts, lengths, strict=True))


def _all_read(text: Bytes, starts: Int32s, expected: bytes) -> bool:
    """Whether the same bytes stand at all these ascending places, eight compared at once.

    So up to seven bytes behind them are read, and masked. They are there when blocks end with their separator: the last
    block, of at least four bytes, is not among the places.
    """
    for at in range(0, len(expected), 8):
        if len(starts) and starts[-1] + at + 8 > len(text):
            return False  # blocks that do not: then names are read one by one
        word = expected[at : at + 8]
        mask = np.frombuffer((b"\xff" * len(word)).ljust(8, b"\0"), dtype=np.uint64)
        found = gathered(text, _WORD, starts + at)
        if ((found & mask) != np.frombuffer(word.ljust(8, b"\0"), dtype=np.uint64)).any():
            return False
    return True


@lru_cache(maxsize=32)
def _are_different_texts(names: tuple[bytes, ...]) -> bool:
    return len(set(names)) == len(names) and as_text_or_none(pa.array(names, BINARY)) is not None


@lru_cache(maxsize=32)
def _repeated(names: tuple[bytes, ...], count: int) -> pa.StringArray:
    numbers = np.tile(np.arange(len(names), dtype=np.int32), count)
    return pa.array([name.decode() for name in names], TEXT).take(pa.array(numbers))


def _no_texts(values: pa.BinaryArray) -> Bools:
    if as_text_or_none(values) is not None:
        return np.zeros(len(values), dtype=np.bool_)
    return np.array([as_text_or_none(values.slice(number, 1)) is None for number in range(len(values))])


def _separators_per_block(separators: Int32s, virtual: Bools | None, borders: Int32s) -> Int64s:
    count = len(borders) - 1
    width, rest = divmod(len(separators), count)
    if virtual is None and not rest and width and (separators[width - 1 :: width] + 1 == borders[1:]).all():
        return np.full(count, width)  # all blocks end where they do when each has as many
    if virtual is None:
        return np.diff(np.searchsorted(separators, borders, side="left"))
    # An assumed end counts for the block before its place, a real separator there for the block that begins.
    return np.diff(np.searchsorted(separators * 2 - virtual, borders * 2, side="left"))


def _broken_alternation(are_ends: Bools, per_block: Int64s) -> Bools:
    if not are_ends[0::2].any() and are_ends[1::2].all() and not (per_block & 1).any():
        return np.zeros(len(per_block), dtype=np.bool_)
    odd: Bools = per_block % 2 == 1
    firsts = np.cumsum(per_block) - per_block
    within = np.arange(len(are_ends)) - np.repeat(firsts, per_block)
    wrong = np.flatnonzero(are_ends != (within % 2 == 1))
    odd[np.searchsorted(firsts + per_block, wrong, side="right")] = True
    return odd
