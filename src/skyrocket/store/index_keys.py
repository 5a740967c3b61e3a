"""The index keys of many records at once, as hashes.

For each record its unique key, its keys and (5.4.0) its tags, in this order. All property strings of a batch are
joined and searched as one array of bytes, because the same work in a Python loop would cost more than storing the
message did. Texts outside ASCII take the slow path: Java hashes UTF-16 units, not bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyrocket.format.java_hash import power_of_31, powers_of_31, unsigned_hash
from skyrocket.store.topic_queue import TopicQueue

_Ints = NDArray[np.int64]
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
    prefixes = np.array([queue.index_prefixes for queue in queues], dtype=np.uint64).view(np.uint32).reshape(-1, 2)
    parts = [segments.values(b"UNIQ", b"_KEY"), segments.cut_at_blanks(segments.values(b"KEYS"))]
    hashes = [_hash(joined, part, prefixes[part.records, 0]) for part in parts]
    if with_tags:
        parts.append(segments.values(b"TAGS"))
        hashes.append(_hash(joined, parts[-1], prefixes[parts[-1].records, 1]))
    records = np.concatenate([part.records for part in parts])
    kinds = np.repeat(np.arange(len(parts)), [len(part.records) for part in parts])
    order = np.argsort(records * len(parts) + kinds, kind="stable")
    return KeyHashes(_stored(np.concatenate(hashes))[order], records[order])


class _Texts(NamedTuple):
    """Where texts begin and end in the joined properties, and whose they are."""

    starts: _Ints
    ends: _Ints
    records: _Ints


class _Segments:
    """The properties of all records of a batch, one after the other."""

    def __init__(self, joined: bytes, record_starts: _Ints) -> None:
        self._data = np.frombuffer(joined, dtype=np.uint8)
        self._record_starts = record_starts
        self._ends = np.flatnonzero(self._data == 2)
        self._starts = np.append(0, self._ends[:-1] + 1)
        # The four bytes at every place, as one number each.
        self._words = np.ndarray(shape=(len(joined) - 3,), dtype="<u4", buffer=joined, strides=(1,))
        self._names = self._words[self._starts]

    def _record_of(self, positions: _Ints) -> _Ints:
        return np.searchsorted(self._record_starts, positions, side="right") - 1

    def values(self, name: bytes, rest_of_name: bytes | None = None) -> _Texts:
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
        return _Texts(begin, end, record)

    def cut_at_blanks(self, values: _Texts) -> _Texts:
        """The non-empty pieces of values between single blanks."""
        blanks = np.flatnonzero(self._data == 32)
        if not len(blanks) or not len(values.starts):
            return values
        value = np.searchsorted(values.starts, blanks, side="right") - 1
        inside = blanks[(value >= 0) & (blanks < values.ends[np.maximum(value, 0)])]
        starts = np.sort(np.concatenate([values.starts, inside + 1]))
        ends = np.sort(np.concatenate([inside, values.ends]))
        filled = ends > starts
        return _Texts(starts[filled], ends[filled], self._record_of(starts[filled]))


def _hash(joined: bytes, texts: _Texts, prefix: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Texts of one length at a time: their bytes, loaded eight at once, times the powers of 31."""
    hashes = np.zeros(len(texts.starts), dtype=np.uint32)
    lengths = texts.ends - texts.starts
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        chosen: _Ints | slice = slice(None)
        if lengths[0] != length or (lengths != length).any():
            chosen = np.flatnonzero(lengths == length)
        hashes[chosen] = _hash_equal(joined, texts.starts[chosen], length, prefix[chosen])
    return hashes


def _hash_equal(joined: bytes, starts: _Ints, length: int, prefix: NDArray[np.uint32]) -> NDArray[np.uint32]:
    eights = np.ndarray(shape=(len(joined) - 7,), dtype=np.uint64, buffer=joined, strides=(1,))
    matrix = eights[starts[:, None] + np.arange(0, length, 8)].view(np.uint8)
    powers = np.zeros(matrix.shape[1], dtype=np.uint32)  # bytes behind the text count nothing
    powers[:length] = powers_of_31(length)
    # einsum, not @: twice as fast for integers, and it starts no threads.
    hashes = prefix * np.uint32(power_of_31(length))
    hashes += np.einsum("ij,j->i", matrix.astype(np.uint32), powers)
    if matrix.max() >= 128:
        for number in np.flatnonzero((matrix[:, :length] >= 128).any(axis=1)).tolist():
            text = joined[starts[number] : starts[number] + length].decode("utf-8", "replace")
            hashes[number] = unsigned_hash(text, int(prefix[number]))
    return hashes


def _stored(hashes: NDArray[np.uint32]) -> _Ints:
    """Absolute values of the signed hashes; the one that has none becomes 0."""
    signed = np.abs(hashes.view(np.int32).astype(np.int64))
    signed[signed == 1 << 31] = 0
    return signed
