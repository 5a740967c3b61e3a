"""The properties of many records at once, searched as one array of bytes.

All property strings of a batch are joined, because the same work in a Python loop would cost more than storing the
message did.
"""

from collections.abc import Iterable

import numpy as np

from skyrocket.format.dtypes import Int64s
from skyrocket.format.record import Buffer
from skyrocket.format.text_hashes import Texts

_PAD = b"\x02" + bytes(8)  # ends the last property, and lets eight bytes be loaded from every place
_WORD = {name: int.from_bytes(name, "little") for name in (b"KEYS", b"TAGS", b"UNIQ", b"_KEY")}


class PropertySegments:
    """The properties of all records of a batch, one after the other."""

    def __init__(self, properties: Iterable[bytes], lengths: Int64s) -> None:
        self._joined = joined = b"\x02".join(properties) + _PAD
        self._data = np.frombuffer(joined, dtype=np.uint8)
        self._lengths = lengths
        self._record_starts = np.cumsum(lengths + 1) - lengths - 1
        self._ends = np.flatnonzero(self._data == 2)
        self._starts = np.append(0, self._ends[:-1] + 1)
        # The four bytes at every place, as one number each.
        self._words = np.ndarray(shape=(len(joined) - 3,), dtype="<u4", buffer=joined, strides=(1,))
        self._names = self._words[self._starts]

    def _record_of(self, positions: Int64s) -> Int64s:
        return np.searchsorted(self._record_starts, positions, side="right") - 1

    def values(self, name: bytes, rest_of_name: bytes | None = None) -> Texts:
        """The values of a property; an empty value does not exist, the last of several counts."""
        found = np.flatnonzero(self._names == _WORD[name])
        begin, end = self._starts[found] + 4, self._ends[found]
        if rest_of_name is not None:
            whole = self._words[begin] == _WORD[rest_of_name]
            begin, end = begin[whole] + 4, end[whole]
        ok = (begin + 1 < end) & (self._data[begin] == 1)
        begin, end = begin[ok] + 1, end[ok]
        record = self._record_of(begin)
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
        return np.unique(self._record_of(np.flatnonzero(self._data[:end] == byte)))


def joined_properties(buffer: Buffer, starts: Int64s, lengths: Int64s) -> PropertySegments:
    """The properties of records that lie in one buffer."""
    slices = map(slice, starts.tolist(), (starts + lengths).tolist())
    return PropertySegments(map(buffer.__getitem__, slices), lengths)  # type: ignore[arg-type]  # of one kind or another
