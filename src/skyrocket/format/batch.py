"""The body of a batch send: one element per message, back to back, without a count."""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from skyrocket.errors import DataError, MessageRefused
from skyrocket.format.properties import MAX_BYTES

_HEAD = Struct(">iiiii")  # size, magic 0, CRC 0, flag, body length
_PROPERTIES_LENGTH = Struct(">h")
_HEAD_SIZE = _HEAD.size
_SMALLEST = _HEAD_SIZE + _PROPERTIES_LENGTH.size
_unpack_head = _HEAD.unpack_from
_new_tuple = tuple.__new__  # builds a NamedTuple without its Python-level __new__


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


def decode_batch(data: bytes | memoryview) -> list[BatchElement]:
    """The elements of a batch body; raises DataError where it is broken."""
    if not isinstance(data, bytes):
        data = bytes(data)
    elements: list[BatchElement] = []
    end, position = len(data), 0
    while position < end:
        left = end - position
        if left < _SMALLEST:
            raise DataError(f"batch element at byte {position}: only {left} bytes left")
        size, _magic, _crc, flag, body_length = _unpack_head(data, position)
        body_at = position + _HEAD_SIZE
        body_end = body_at + body_length
        following = position + size
        if not _SMALLEST <= size <= left or not 0 <= body_length <= size - _SMALLEST:
            raise DataError(
                f"batch element at byte {position}: size {size}, body length {body_length}, {left} bytes left"
            )
        # By hand: cheaper than a second unpack. RocketMQ reads it as a signed short, so the highest bit never fits.
        properties_length = data[body_end] << 8 | data[body_end + 1]
        if body_end + 2 + properties_length != following or properties_length > MAX_BYTES:
            raise DataError(f"batch element at byte {position}: properties length {properties_length} does not fit")
        elements.append(_new_tuple(BatchElement, (flag, data[body_at:body_end], data[body_end + 2 : following])))
        position = following
    return elements
