"""The body of a batch send: one element per message, back to back, without a count."""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from skyrocket.errors import DataError, MessageRefused
from skyrocket.format.properties import MAX_BYTES

_HEAD = Struct(">iiiii")  # size, magic 0, CRC 0, flag, body length
_PROPERTIES_LENGTH = Struct(">h")
_SMALLEST = _HEAD.size + _PROPERTIES_LENGTH.size


class BatchElement(NamedTuple):
    """One message of a batch; properties are the stored text."""

    flag: int
    body: bytes
    properties: bytes


def encode_batch(elements: Iterable[BatchElement]) -> bytes:
    """The request body of a batch send."""
    parts: list[bytes] = []
    for flag, body, properties in elements:
        if len(properties) > MAX_BYTES:
            raise MessageRefused(f"properties take {len(properties)} bytes; the limit is {MAX_BYTES}")
        size = _SMALLEST + len(body) + len(properties)
        parts += (
            _HEAD.pack(size, 0, 0, flag, len(body)),
            body,
            _PROPERTIES_LENGTH.pack(len(properties)),
            properties,
        )
    return b"".join(parts)


def decode_batch(data: bytes | memoryview) -> Iterator[BatchElement]:
    """The elements of a batch body; raises DataError where it is broken."""
    view = memoryview(data)
    position = 0
    while position < len(view):
        left = len(view) - position
        if left < _SMALLEST:
            raise DataError(f"batch element at byte {position}: only {left} bytes left")
        size, _magic, _crc, flag, body_length = _HEAD.unpack_from(view, position)
        body_at = position + _HEAD.size
        if not _SMALLEST <= size <= left or not 0 <= body_length <= size - _SMALLEST:
            raise DataError(
                f"batch element at byte {position}: size {size}, body length {body_length}, {left} bytes left"
            )
        (properties_length,) = _PROPERTIES_LENGTH.unpack_from(view, body_at + body_length)
        properties_at = body_at + body_length + _PROPERTIES_LENGTH.size
        if properties_at + properties_length != position + size:
            raise DataError(f"batch element at byte {position}: properties length {properties_length} does not fit")
        yield BatchElement(
            flag, bytes(view[body_at : body_at + body_length]), bytes(view[properties_at : position + size])
        )
        position += size
