"""Java's String.hashCode of many texts at once.

A Python loop over the characters of a key costs more than everything else that is done for a message. So texts of one
length form a matrix of bytes, whose product with the powers of 31 modulo 2^32 is their hash. A hash continues that of a
prefix: the prefix's times 31^length, plus the text's own. Text outside ASCII is hashed singly: Java hashes UTF-16.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyrocket.format.dtypes import Int64s
from skyrocket.format.java_hash import unsigned_hash

Hashes = NDArray[np.uint32]
_BLANK = 32


class Texts(NamedTuple):
    """Slices of one byte string, ascending, and the record that each belongs to."""

    data: bytes
    starts: Int64s
    ends: Int64s
    records: Int64s


@lru_cache(maxsize=4096)
def powers_of_31(count: int) -> Hashes:
    """31^(count-1), …, 31, 1 modulo 2^32."""
    return np.array([pow(31, exponent, 1 << 32) for exponent in range(count - 1, -1, -1)], dtype=np.uint32)


@lru_cache(maxsize=4096)
def power_of_31(exponent: int) -> int:
    """31^exponent modulo 2^32: what a prefix's hash is multiplied by when `exponent` units follow it."""
    return pow(31, exponent, 1 << 32)


def hash_texts(texts: Texts, prefixes: Hashes) -> Hashes:
    """Unsigned hashes of texts, each continued from the hash of what stands before it."""
    hashes = np.zeros(len(texts.starts), dtype=np.uint32)
    lengths = texts.ends - texts.starts
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        chosen = np.flatnonzero(lengths == length)
        starts, before = texts.starts[chosen], prefixes[chosen]
        matrix = _matrix(texts.data, starts, length)
        # einsum, not @: twice as fast for integers, and it starts no threads.
        own = np.einsum("ij,j->i", matrix.astype(np.uint32), powers_of_31(length))
        hashes[chosen] = before * np.uint32(power_of_31(length)) + own
        if matrix.max(initial=0) >= 128:
            for row in np.flatnonzero((matrix >= 128).any(axis=1)).tolist():
                text = texts.data[starts[row] : starts[row] + length].decode("utf-8", "replace")
                hashes[chosen[row]] = unsigned_hash(text, int(before[row]))
    return hashes


def _matrix(data: bytes, starts: Int64s, length: int) -> NDArray[np.uint8]:
    """The bytes of texts of one length, a row each: every text is one item of a type as wide as it is."""
    if length == 0:
        return np.empty((len(starts), 0), dtype=np.uint8)
    items = np.ndarray((len(data) - length + 1,), f"V{length}", data, 0, strides=(1,))
    return items[starts].view(np.uint8).reshape(len(starts), length)


def cut_at_blanks(texts: Texts) -> Texts:
    """The pieces of texts between single blanks that are not empty."""
    blanks = np.flatnonzero(np.frombuffer(texts.data, dtype=np.uint8) == _BLANK)
    if not len(blanks) or not len(texts.starts):
        return texts
    owners = np.searchsorted(texts.starts, blanks, side="right") - 1
    inside = (owners >= 0) & (blanks < texts.ends[np.maximum(owners, 0)])
    blanks, owners = blanks[inside], owners[inside]
    # Where texts lie side by side, what follows a blank at the end of one begins where the next does: it comes first.
    starts = np.concatenate([blanks + 1, texts.starts])
    order = np.argsort(starts, kind="stable")
    starts = starts[order]
    ends = np.sort(np.concatenate([blanks, texts.ends]))
    records = np.concatenate([texts.records[owners], texts.records])[order]
    filled = ends > starts
    return Texts(texts.data, starts[filled], ends[filled], records[filled])
