"""The index keys of many records as hashes: of each its unique key, its keys and (5.4.0) its tags, in this order.

The hash is Java's over `topic#key`: that of `topic#` times 31^length, plus that of the key. Keys of one length are a
matrix whose product with the powers of 31 is their hash. Text outside ASCII takes the slow path: Java hashes UTF-16.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyrocket.format.java_hash import power_of_31, powers_of_31, unsigned_hash
from skyrocket.model import property_names
from skyrocket.pipeline.columns import PropertyBlocks
from skyrocket.pipeline.columns.parts import Bools, Int64s

Hashes = NDArray[np.uint32]
KEY_DTYPE = np.dtype([("hash", "<i4"), ("physical_offset", "<i8"), ("store_timestamp", "<i8")])
_BLANK = 32


class Prefixes(NamedTuple):
    """Hashes of what stands before a key and before tags, by topic number."""

    of_keys: Hashes
    of_tags: Hashes


class _Texts(NamedTuple):
    """Slices of one text, and the record of each."""

    data: bytes
    starts: Int64s
    ends: Int64s
    records: Int64s


def prefixes_of(topics: list[str]) -> Prefixes:
    """For topics in the order of their numbers."""
    return Prefixes(
        np.array([unsigned_hash(topic + "#") for topic in topics], dtype=np.uint32),
        np.array([unsigned_hash(topic + "#T#") for topic in topics], dtype=np.uint32),
    )


def index_keys(
    blocks: PropertyBlocks,
    topic_numbers: Int64s,
    prefixes: Prefixes,
    indexed: Bools,
    physical_offsets: Int64s,
    store_timestamps: Int64s,
    *,
    with_tags: bool,
) -> NDArray[np.void]:
    """The keys of the records that are indexed, in log order."""
    parts = [
        _texts(blocks.column(property_names.UNIQUE_KEY)),
        _cut_at_blanks(_texts(blocks.column(property_names.KEYS))),
    ]
    tables = [prefixes.of_keys, prefixes.of_keys]
    if with_tags:
        parts.append(_texts(blocks.column(property_names.TAGS)))
        tables.append(prefixes.of_tags)
    hashes = [_hash(part, table[topic_numbers[part.records]]) for part, table in zip(parts, tables, strict=True)]
    records = np.concatenate([part.records for part in parts])
    kinds = np.repeat(np.arange(len(parts)), [len(part.records) for part in parts])
    order = np.argsort(records * len(parts) + kinds, kind="stable")
    order = order[indexed[records[order]]]
    records = records[order]
    keys = np.empty(len(records), dtype=KEY_DTYPE)
    keys["hash"] = _stored(np.concatenate(hashes)[order])
    keys["physical_offset"] = physical_offsets[records]
    keys["store_timestamp"] = store_timestamps[records]
    return keys


def _texts(column: pa.StringArray) -> _Texts:
    """The texts of a column, without its nulls."""
    records = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    text = b"" if data is None else data.to_pybytes()
    return _Texts(text, ends[:-1][records], ends[1:][records], records)


def _cut_at_blanks(texts: _Texts) -> _Texts:
    """The pieces between single blanks that are not empty."""
    blanks = np.flatnonzero(np.frombuffer(texts.data, dtype=np.uint8) == _BLANK)
    if not len(blanks) or not len(texts.starts):
        return texts
    owners = np.searchsorted(texts.starts, blanks, side="right") - 1
    inside = (owners >= 0) & (blanks < texts.ends[np.maximum(owners, 0)])
    blanks, owners = blanks[inside], owners[inside]
    # Texts lie side by side: what follows a blank at the end of one begins where the next begins, and must come first.
    starts = np.concatenate([blanks + 1, texts.starts])
    order = np.argsort(starts, kind="stable")
    starts = starts[order]
    ends = np.sort(np.concatenate([blanks, texts.ends]))
    records = np.concatenate([texts.records[owners], texts.records])[order]
    filled = ends > starts
    return _Texts(texts.data, starts[filled], ends[filled], records[filled])


def _hash(texts: _Texts, prefixes: Hashes) -> Hashes:
    hashes = np.zeros(len(texts.starts), dtype=np.uint32)
    if not len(hashes):
        return hashes
    data = np.frombuffer(texts.data, dtype=np.uint8)
    lengths = texts.ends - texts.starts
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        chosen = np.flatnonzero(lengths == length)
        starts = texts.starts[chosen]
        matrix = _matrix(data, starts, length)
        own = prefixes[chosen] * np.uint32(power_of_31(length))
        # einsum, not @: twice as fast for integers, and it starts no threads.
        hashes[chosen] = own + np.einsum("ij,j->i", matrix.astype(np.uint32), powers_of_31(length))
        for row in np.flatnonzero((matrix >= 128).any(axis=1)).tolist() if matrix.max(initial=0) >= 128 else []:
            text = texts.data[starts[row] : starts[row] + length].decode("utf-8", "replace")
            hashes[chosen[row]] = unsigned_hash(text, int(prefixes[chosen[row]]))
    return hashes


def _matrix(data: NDArray[np.uint8], starts: Int64s, length: int) -> NDArray[np.uint8]:
    """The bytes of texts of one length, a row each: every text is one item of a type as wide as it is."""
    if length == 0:
        return np.empty((len(starts), 0), dtype=np.uint8)
    items = np.ndarray((len(data) - length + 1,), f"V{length}", data, 0, strides=(1,))
    return items[starts].view(np.uint8).reshape(len(starts), length)


def _stored(hashes: Hashes) -> Int64s:
    """Absolute values of the signed hashes; the one that has none becomes 0."""
    signed = np.abs(hashes.view(np.int32).astype(np.int64))
    signed[signed == 1 << 31] = 0
    return signed
