"""The index keys of many records at once, as hashes.

For each record its unique key, its keys and (5.4.0) its tags, in this order. All property strings of a batch are
joined and searched as one array of bytes, because the same work in a Python loop would cost more than storing the
message did. Texts outside ASCII take the slow path: Java hashes UTF-16 units, not bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skyrocket.format.java_hash import power_of_31, powers_of_31, unsigned_hash
from skyrocket.store.topic_queue import TopicQueue

_Ints = NDArray[np.int64]
_TAGS = 2  # third kind of key; after unique key and keys
_PAD = b"\x02" + bytes(8)  # ends the last property, and lets eight bytes be loaded from every place
_WORD = {name: int.from_bytes(name, "little") for name in (b"KEYS", b"TAGS", b"UNIQ", b"_KEY")}


@dataclass(frozen=True, slots=True)
class KeyHashes:
    """One line per key: its stored hash and the number of its record in the batch."""

    hashes: _Ints
    records: _Ints


def key_hashes(queues: Sequence[TopicQueue], properties: Sequence[bytes], *, with_tags: bool) -> KeyHashes:
    """The keys of a batch, record by record."""
    joined = b"\x02".join(properties) + _PAD
    lengths = np.array(list(map(len, properties)), dtype=np.int64)
    segments = _Segments(joined, np.cumsum(lengths + 1) - lengths - 1)
    parts = [segments.values(b"UNIQ", b"_KEY"), segments.cut_at_blanks(*segments.values(b"KEYS"))]
    if with_tags:
        parts.append(segments.values(b"TAGS"))
    starts = np.concatenate([part[0] for part in parts])
    ends = np.concatenate([part[1] for part in parts])
    kinds = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    records = segments.record_of(starts)
    order = np.argsort(records * 4 + kinds, kind="stable")
    starts, ends, kinds, records = starts[order], ends[order], kinds[order], records[order]
    prefixes = np.array([queue.index_prefixes for queue in queues], dtype=np.uint64).view(np.uint32).reshape(-1, 2)
    prefix = prefixes[records, (kinds == _TAGS).astype(np.int64)]
    return KeyHashes(_stored(_hash(joined, starts, ends, prefix)), records)


class _Segments:
    """The properties of all records of a batch, one after the other."""

    def __init__(self, joined: bytes, record_starts: _Ints) -> None:
        self.data = np.frombuffer(joined, dtype=np.uint8)
        self._record_starts = record_starts
        self._ends = np.flatnonzero(self.data == 2)
        self._starts = np.append(0, self._ends[:-1] + 1)
        # The four bytes at every place, as one number each.
        self._words = np.ndarray(shape=(len(joined) - 3,), dtype="<u4", buffer=joined, strides=(1,))
        self._names = self._words[self._starts]

    def record_of(self, positions: _Ints) -> _Ints:
        return np.searchsorted(self._record_starts, positions, side="right") - 1

    def values(self, name: bytes, rest_of_name: bytes | None = None) -> tuple[_Ints, _Ints]:
        """Where the values of a property begin and end; an empty value does not exist, the last of several counts."""
        found = np.flatnonzero(self._names == _WORD[name])
        begin, end = self._starts[found] + 4, self._ends[found]
        if rest_of_name is not None:
            whole = self._words[begin] == _WORD[rest_of_name]
            begin, end = begin[whole] + 4, end[whole]
        ok = (begin + 1 < end) & (self.data[begin] == 1)
        begin, end = begin[ok] + 1, end[ok]
        record = self.record_of(begin)
        if len(record) and (record[1:] == record[:-1]).any():
            last = np.append(record[1:] != record[:-1], True)
            begin, end = begin[last], end[last]
        return begin, end

    def cut_at_blanks(self, begin: _Ints, end: _Ints) -> tuple[_Ints, _Ints]:
        """The non-empty pieces of values between single blanks."""
        blanks = np.flatnonzero(self.data == 32)
        if not len(blanks) or not len(begin):
            return begin, end
        value = np.searchsorted(begin, blanks, side="right") - 1
        inside = blanks[(value >= 0) & (blanks < end[np.maximum(value, 0)])]
        starts = np.sort(np.concatenate([begin, inside + 1]))
        ends = np.sort(np.concatenate([inside, end]))
        filled = ends > starts
        return starts[filled], ends[filled]


def _hash(joined: bytes, starts: _Ints, ends: _Ints, prefix: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Texts of one length at a time: their bytes, loaded eight at once, times the powers of 31."""
    lengths = ends - starts
    hashes = np.zeros(len(starts), dtype=np.uint32)
    eights = np.ndarray(shape=(len(joined) - 7,), dtype=np.uint64, buffer=joined, strides=(1,))
    is_ascii = joined.isascii()
    for length in np.unique(lengths).tolist():
        chosen = np.flatnonzero(lengths == length)
        places = starts[chosen][:, None] + np.arange(0, length, 8)
        matrix = eights[places].view(np.uint8)
        powers = np.zeros(matrix.shape[1], dtype=np.uint32)  # bytes behind the text count nothing
        powers[:length] = powers_of_31(length)
        hashes[chosen] = prefix[chosen] * np.uint32(power_of_31(length)) + matrix.astype(np.uint32) @ powers
        if not is_ascii:
            wide = chosen[(matrix[:, :length] >= 128).any(axis=1)]
            for number in wide.tolist():
                text = joined[starts[number] : ends[number]].decode("utf-8", "replace")
                hashes[number] = unsigned_hash(text, int(prefix[number]))
    return hashes


def _stored(hashes: NDArray[np.uint32]) -> _Ints:
    """Absolute values of the signed hashes; the one that has none becomes 0."""
    signed = np.abs(hashes.view(np.int32).astype(np.int64))
    signed[signed == 1 << 31] = 0
    return signed
