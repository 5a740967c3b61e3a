"""Java's String.hashCode, one text at a time and many at once.

Tags, index keys and timer topics are stored as this hash. A Python loop over the characters of a key costs more
than everything else that is done for a message, so `hash_many` works on all keys of a batch together:
keys of one length form a matrix of bytes, and the hash is its product with the powers of 31 modulo 2^32.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_MASK = 0xFFFFFFFF


def unsigned_hash(text: str, start: int = 0) -> int:
    """Hash of a text in 0 … 2^32-1, continued from the hash of what stands before it."""
    h = start
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        h = (31 * h + (high << 8 | low)) & _MASK
    return h


def signed(h: int) -> int:
    """The 32-bit value as Java's signed int."""
    return h - (1 << 32) if h & 0x80000000 else h


def java_hash(text: str) -> int:
    """String.hashCode of a text."""
    return signed(unsigned_hash(text))


@lru_cache(maxsize=4096)
def powers_of_31(count: int) -> NDArray[np.uint32]:
    """31^(count-1), …, 31, 1 modulo 2^32."""
    powers = [1] * count
    for i in range(count - 2, -1, -1):
        powers[i] = powers[i + 1] * 31 & _MASK
    return np.array(powers, dtype=np.uint32)


@lru_cache(maxsize=4096)
def power_of_31(exponent: int) -> int:
    """31^exponent modulo 2^32: what a prefix's hash is multiplied by when `exponent` units follow it."""
    return pow(31, exponent, 1 << 32)


def hash_many(texts: Sequence[bytes]) -> NDArray[np.uint32]:
    """Unsigned hashes of many UTF-8 texts, in order."""
    result = np.empty(len(texts), dtype=np.uint32)
    by_length: dict[int, list[int]] = {}
    for number, text in enumerate(texts):
        by_length.setdefault(len(text), []).append(number)
    for length, numbers in by_length.items():
        if length == 0:
            result[numbers] = 0
            continue
        joined = b"".join([texts[n] for n in numbers])
        matrix = np.frombuffer(joined, dtype=np.uint8).reshape(len(numbers), length)
        if joined.isascii():
            result[numbers] = matrix.astype(np.uint32) @ powers_of_31(length)
        else:
            result[numbers] = [unsigned_hash(texts[n].decode("utf-8", "replace")) for n in numbers]
    return result
