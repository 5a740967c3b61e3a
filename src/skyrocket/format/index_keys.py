"""The keys of many records as an index stores them: of each record its unique key, its keys and (5.4.0) its tags."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyrocket.format.dtypes import Int64s
from skyrocket.format.even_texts import EvenTexts
from skyrocket.format.java_hash import unsigned_hash
from skyrocket.format.property_segments import joined_properties
from skyrocket.format.text_hashes import Hashes, Texts, cut_at_blanks, hash_texts, power_of_31, powers_of_31

_TAGS = 2  # unique key, keys, tags
_BLANK, _NOT_ASCII = 32, 128


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


def even_key_hashes(texts: EvenTexts, prefixes: NDArray[np.uint32], *, with_tags: bool) -> KeyHashes | None:
    """The same for texts that differ in letters and digits of these values alone; None for others.

    So one of them says where the keys of all are, and nothing is searched: a tenth of the cost.
    """
    first, rows = joined_properties((texts[0],)), texts.rows
    unique_key, tags = first.values(b"UNIQ", b"_KEY"), first.values(b"TAGS")
    places = [(*place, 0) for place in _places(unique_key)]
    places += [(*place, 0) for place in _places(cut_at_blanks(first.values(b"KEYS")))]
    if with_tags:
        places += [(*place, 1) for place in _places(tags)]
    is_key = np.zeros(texts.length, dtype=np.bool_)
    for begin, end, _ in places:
        is_key[begin:end] = True
    varying = (rows != rows[0]).any(axis=0)
    if (varying & ~is_key).any():
        return None
    values = rows[:, is_key]
    if values.min(initial=_NOT_ASCII) <= _BLANK or values.max(initial=0) >= _NOT_ASCII:
        return None
    hashes = np.empty((len(texts), len(places)), dtype=np.uint32)
    for number, (begin, end, kind) in enumerate(places):
        own = np.einsum("ij,j->i", rows[:, begin:end].astype(np.uint32), powers_of_31(end - begin))
        hashes[:, number] = prefixes[:, kind] * np.uint32(power_of_31(end - begin)) + own
    records = np.repeat(np.arange(len(texts)), len(places))
    are_tags = np.tile([kind == 1 for _, _, kind in places], len(texts))
    return KeyHashes(stored_hashes(hashes.ravel()), records, are_tags)


def _places(texts: Texts) -> list[tuple[int, int]]:
    return list(zip(texts.starts.tolist(), texts.ends.tolist(), strict=True))
