"""What a registry's clients put before a body: the number of its schema, and in Protobuf which message of the file."""

import struct
from typing import Final

from skyrocket.errors import DataError

_HEAD: Final = struct.Struct(">bI")


class BodyUnreadable(DataError):
    """A body is not what its schema says."""


def split_number(body: bytes) -> tuple[int, bytes]:
    """The number of the schema, and what stands behind it; raises BodyUnreadable."""
    if len(body) < _HEAD.size or body[0] != 0:
        raise BodyUnreadable("the body does not begin with the number of its schema")
    return _HEAD.unpack_from(body)[1], body[_HEAD.size :]


def split_message_path(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """Which message of a .proto file follows, as places from the outermost inwards; raises BodyUnreadable."""
    count, at = _integer(data, 0)
    if count == 0:
        return (0,), data[at:]  # the first of the file, in one byte
    if not 0 < count <= len(data):
        raise BodyUnreadable("the body does not say which message of its schema it is")
    path = []
    for _ in range(count):
        place, at = _integer(data, at)
        path.append(place)
    return tuple(path), data[at:]


def _integer(data: bytes, at: int) -> tuple[int, int]:
    """A number as Protobuf's sint64, and where the next one begins."""
    value = shift = 0
    for position in range(at, min(at + 10, len(data))):
        value |= (data[position] & 0x7F) << shift
        shift += 7
        if not data[position] & 0x80:
            return (value >> 1) ^ -(value & 1), position + 1
    raise BodyUnreadable("the body ends before it says which message of its schema it is")
