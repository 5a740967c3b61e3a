"""What makes a row the same row when it is sent again: not its partition, which may be another after a restart.

    UNIQ_KEY = scope 2 bytes │ hash 8 bytes │ time of sending 4 bytes │ hash 2 bytes        as 32 hexadecimal digits

The hash is that of the row: of its `messageId` if it has one, else of everything in it. The scope is query, batch and
topic, so a batch knows its own messages among those of others. Two equal rows of one batch have equal ids: what counts
is how many there are of each. The time stands where Java's ids have it, since tools read it; it does not count when
ids are compared.
"""

import hashlib
import itertools
import time
from collections.abc import Iterable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyrocket.format.message_id import UniqueKeyGenerator

ID_SIZE: Final = 12  # without the time
IDS: Final = np.dtype(f"S{ID_SIZE}")
_TEXT_SIZE: Final = 32
_TAG_SIZE: Final = 2
_TIME_AT: Final = slice(10, 14)

Ids: TypeAlias = npt.NDArray[np.bytes_]


class Scope:
    """The batch and topic in which ids are compared."""

    def __init__(self, *names: str) -> None:
        key = hashlib.sha256("\0".join(names).encode()).digest()
        self._tag = key[:_TAG_SIZE]
        self._mask = np.frombuffer(key[_TAG_SIZE:ID_SIZE], np.uint8)

    def ids(self, contents: "pa.BinaryArray") -> Ids:
        """The ids of rows, from what makes each of them itself."""
        return self.ids_of(slices(contents))

    def ids_of(self, contents: Iterable[bytes]) -> Ids:
        # Processors have instructions for SHA-256: nothing in Python's library is quicker.
        hashed = hashlib.sha256
        joined = b"".join([hashed(content).digest() for content in contents])
        digests = np.frombuffer(joined, np.uint8).reshape(-1, hashed().digest_size)
        made = np.empty((len(digests), ID_SIZE), np.uint8)
        made[:, :_TAG_SIZE] = np.frombuffer(self._tag, np.uint8)
        made[:, _TAG_SIZE:] = digests[:, : ID_SIZE - _TAG_SIZE] ^ self._mask
        return made.view(IDS).reshape(-1)

    def recognised(self, unique_keys: Iterable[str]) -> list[bytes]:
        """The ids among some unique keys; b"" for each that is none of this scope."""
        tag = self._tag.hex().upper()
        return [id_of(key) if key.startswith(tag) and len(key) == _TEXT_SIZE else b"" for key in unique_keys]


def id_of(unique_key: str) -> bytes:
    """The part of a unique key that is compared; b"" if it is not such a key."""
    try:
        raw = bytes.fromhex(unique_key)
    except ValueError:
        return b""
    return (raw[: _TIME_AT.start] + raw[_TIME_AT.stop :]) if len(raw) == 16 else b""


def unique_keys(ids: Ids, now_ms: int | None = None) -> "pa.BinaryArray":
    """The ids as text for the property UNIQ_KEY, with the time of sending."""
    moment = _MONTH.next(round(time.time() * 1000) if now_ms is None else now_ms)[-12:-4]
    raw = np.empty((len(ids), 16), np.uint8)
    plain = np.frombuffer(ids.tobytes(), np.uint8).reshape(-1, ID_SIZE)
    raw[:, : _TIME_AT.start] = plain[:, : _TIME_AT.start]
    raw[:, _TIME_AT] = np.frombuffer(bytes.fromhex(moment), np.uint8)
    raw[:, _TIME_AT.stop :] = plain[:, _TIME_AT.start :]
    return fixed(raw.tobytes().hex().upper().encode(), _TEXT_SIZE)


_MONTH: Final = UniqueKeyGenerator(b"\0\0\0\0")


def fixed(data: bytes, size: int) -> "pa.BinaryArray":
    """Values of one size that stand one behind the other, as an Arrow array."""
    count = len(data) // size
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(size)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def slices(values: "pa.BinaryArray") -> list[bytes]:
    """Each value of a binary array without nulls."""
    ends = offsets_of(values).tolist()
    buffer = values.buffers()[2]
    data = b"" if buffer is None else buffer.to_pybytes()  # slices of bytes are made quicker than those of views
    return [data[begin:end] for begin, end in itertools.pairwise(ends)]


def offsets_of(values: "pa.BinaryArray") -> npt.NDArray[np.int32]:
    """Where each value begins in the array's data, and where the last one ends."""
    return np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, values.offset * 4)
