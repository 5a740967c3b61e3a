"""The keys of many records as an index stores them: of each record its unique key, its keys and (5.4.0) its tags."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyrocket.format.dtypes import Int64s
from skyrocket.format.java_hash import unsigned_hash
from skyrocket.format.text_hashes import Hashes, Texts, cut_at_blanks, hash_texts

_TAGS = 2  # unique key, keys, tags


class KeyHashes(NamedTuple):
    """Keys in the order in which they are indexed: stored hash, record, and whether it stands for the tags."""

    hashes: Int64s
    records: Int64s
    are_tags: NDArray[np.bool_]


def key_prefixes(topics: Iterable[str]) -> NDArray[np.uint32]:
    """A row per topic: the hashes of what stands before its keys, and before its tags."""
    rows = [(unsigned_hash(topic + "#"), unsigned_hash(topic + "#T#")) for topic in topics]
    return np.array(rows, dtype=np.uint32).reshape(-1, 2)


def key_hashes(unique_keys: Texts, keys: Texts, tags: Texts | None, prefixes: NDArray[np.uint32]) -> KeyHashes:
    """The keys of records from their properties; `prefixes` has the row of each record's topic."""
    parts = [unique_keys, cut_at_blanks(keys)] + ([tags] if tags is not None else [])
    hashes = [hash_texts(part, prefixes[part.records, kind // _TAGS]) for kind, part in enumerate(parts)]
    records = np.concatenate([part.records for part in parts])
    kinds = np.repeat(np.arange(len(parts)), [len(part.records) for part in parts])
    order = np.argsort(records * len(parts) + kinds, kind="stable")
    return KeyHashes(stored_hashes(np.concatenate(hashes))[order], records[order], kinds[order] == _TAGS)


def stored_hashes(hashes: Hashes) -> Int64s:
    """Absolute values of the signed hashes; the one that has none becomes 0."""
    signed = np.abs(hashes.view(np.int32).astype(np.int64))
    signed[signed == 1 << 31] = 0
    return signed
