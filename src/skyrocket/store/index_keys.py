"""The index keys of many records at once, found in their properties.

All property strings of a batch are joined and searched as one array of bytes, because the same work in a Python loop
would cost more than storing the message did.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skyrocket.format import index_keys
from skyrocket.format.index_keys import KeyHashes
from skyrocket.format.text_hashes import Texts

_Ints = NDArray[np.int64]
_PAD = b"\x02" + bytes(8)  # ends the last property, and lets eight bytes be loaded from every place
_WORD = {name: int.from_bytes(name, "little") for name in (b"KEYS", b"TAGS", b"UNIQ", b"_KEY")}


def key_hashes(prefixes: NDArray[np.uint64], properties: Sequence[bytes], *, with_tags: bool) -> KeyHashes:
    """The keys of a batch, record by record; `prefixes` are those of its queue (`TopicQueue.index_prefixes`)."""
    joined = b"\x02".join(properties) + _PAD
    lengths = np.array(list(map(len, properties)), dtype=np.int64)
    segments = _Segments(joined, np.cumsum(lengths + 1) - lengths - 1)
    tags = segments.values(b"TAGS") if with_tags else None
    halves = prefixes.view(np.uint32).reshape(-1, 2)
    return index_keys.key_hashes(segments.values(b"UNIQ", b"_KEY"), segments.values(b"KEYS"), tags, halves)


class _Segments:
    """The properties of all records of a batch, one after the other."""

    def __init__(self, joined: bytes, record_starts: _Ints) -> None:
        self._joined = joined
        self._data = np.frombuffer(joined, dtype=np.uint8)
        self._record_starts = record_starts
        self._ends = np.flatnonzero(self._data == 2)
        self._starts = np.append(0, self._ends[:-1] + 1)
        # The four bytes at every place, as one number each.
        self._words = np.ndarray(shape=(len(joined) - 3,), dtype="<u4", buffer=joined, strides=(1,))
        self._names = self._words[self._starts]

    def _record_of(self, positions: _Ints) -> _Ints:
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
