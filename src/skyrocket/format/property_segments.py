"""The properties of many records at once, searched as one array of bytes.

All property strings of a batch are joined, because the same work in a Python loop would cost more than storing the
message did.
"""

from collections.abc import Sequence

import numpy as np

from skyrocket.format.dtypes import Int64s, gathered
from skyrocket.format.record import Buffer
from skyrocket.format.text_hashes import Texts

_PAD = b"\x02" + bytes(8)  # ends the last property, and lets eight bytes be loaded from every place
_MANY_LENGTHS = 64
_WORD = {name: int.from_bytes(name, "little") for name in (b"KEYS", b"TAGS", b"UNIQ", b"_KEY")}


class PropertySegments:
    """The properties of all records of a batch, one after the other."""

    def __init__(self, joined: bytes, lengths: Int64s) -> None:
        """`joined` are the properties of all records, each ended by a separator, and what `_PAD` adds to that."""
        self._joined = joined
        self._data = np.frombuffer(joined, dtype=np.uint8)
        self._lengths = lengths
        self._record_starts = np.cumsum(lengths + 1) - lengths - 1
        self._ends = np.flatnonzero(self._data == 2)
        self._starts = np.append(0, self._ends[:-1] + 1)
        # The four bytes at every place, as one number each.
        self._words = np.ndarray(shape=(len(joined) - 3,), dtype="<u4", buffer=joined, strides=(1,))
        self._names = self._words[self._starts]
        firsts = np.searchsorted(
            self._starts, self._record_starts
        )  # of each record; even one without any has an empty one
        self._records = np.repeat(np.arange(len(lengths)), np.diff(np.append(firsts, len(self._starts))))
        self._found: dict[bytes, Texts] = {}

    def values(self, name: bytes, rest_of_name: bytes | None = None) -> Texts:
        """The values of a property; an empty value does not exist, the last of several counts."""
        known = self._found.get(name)
        if known is None:
            known = self._found[name] = self._search(name, rest_of_name)
        return known

    def _search(self, name: bytes, rest_of_name: bytes | None) -> Texts:
        found = np.flatnonzero(self._names == _WORD[name])
        begin, end = self._starts[found] + 4, self._ends[found]
        if rest_of_name is not None:
            whole = self._words[begin] == _WORD[rest_of_name]
            found, begin, end = found[whole], begin[whole] + 4, end[whole]
        ok = (begin + 1 < end) & (self._data[begin] == 1)
        begin, end = begin[ok] + 1, end[ok]
        record = self._records[found[ok]]
        if len(record) and (record[1:] == record[:-1]).any():
            last = np.append(record[1:] != record[:-1], True)
            begin, end, record = begin[last], end[last], record[last]
        return Texts(self._joined, begin, end, record)

    def blocks(self) -> list[bytes]:
        """The properties of each record."""
        starts = self._record_starts
        return list(map(self._joined.__getitem__, map(slice, starts.tolist(), (starts + self._lengths).tolist())))

    def mention(self, text: bytes) -> bool:
        """Whether a text without separators stands anywhere in them."""
        return text in self._joined

    def records_with(self, byte: int) -> Int64s:
        """The records in whose properties a byte stands, which is no separator."""
        end = len(self._joined) - len(_PAD)
        if self._joined.find(byte, 0, end) < 0:
            return np.empty(0, dtype=np.int64)
        places = np.flatnonzero(self._data[:end] == byte)
        return np.unique(np.searchsorted(self._record_starts, places, side="right") - 1)


def joined_properties(properties: Sequence[bytes]) -> PropertySegments:
    """The properties of records, one of them each."""
    lengths = np.array(list(map(len, properties)), dtype=np.int64)
    return PropertySegments(b"\x02".join(properties) + _PAD, lengths)


def properties_in(buffer: Buffer, starts: Int64s, lengths: Int64s) -> PropertySegments:
    """The properties of records that lie in one buffer.

    Most have one of a few lengths: those of one length are copied at once.
    """
    counts = np.bincount(lengths)
    different = np.flatnonzero(counts).tolist()
    if len(different) > _MANY_LENGTHS:
        blocks = map(memoryview(buffer).__getitem__, map(slice, starts.tolist(), (starts + lengths).tolist()))
        return PropertySegments(b"\x02".join(blocks) + _PAD, lengths)
    total = int(lengths.sum()) + len(lengths)
    joined = np.full(total + len(_PAD) - 1, 2, dtype=np.uint8)
    joined[total:] = 0
    targets = np.cumsum(lengths + 1) - lengths - 1
    for length in different:
        if length:
            rows = slice(None) if len(different) == 1 else np.flatnonzero(lengths == length)
            kind = np.dtype(f"V{length}")
            anywhere = np.ndarray((len(joined) - length + 1,), kind, joined, 0, strides=(1,))
            anywhere[targets[rows]] = gathered(buffer, kind, starts[rows])
    return PropertySegments(joined.tobytes(), lengths)
