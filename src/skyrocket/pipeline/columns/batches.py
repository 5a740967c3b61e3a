"""Inner batches: one record whose body is several messages.

A batch that says "unwrap me" is several messages for a consumer, with consecutive queue offsets. Such records are rare,
so each member is written as a record of its own, and the vectorised decoder reads these.
"""

from struct import Struct

from skyrocket.errors import DataError
from skyrocket.format import sys_flag as flags
from skyrocket.format.batch import BatchElement, decode_batch
from skyrocket.format.compression import plain_body
from skyrocket.format.record import (
    MAGIC_V2,
    PROPERTIES_LENGTH,
    SYS_FLAG_AT,
    TOPIC_LENGTH_V1,
    TOPIC_LENGTH_V2,
    Buffer,
    head_struct,
)

_INT = Struct(">i")
# Numbers of fields in a head.
_SIZE, _MAGIC, _FLAG, _QUEUE_OFFSET, _PHYSICAL_OFFSET, _SYS_FLAG, _BODY_LENGTH = 0, 1, 4, 5, 6, 7, 14
_OF_THE_BATCH = flags.INNER_BATCH | flags.NEED_UNWRAP | flags.COMPRESSED


class BadBody(DataError):
    """A record whose layout is intact and whose body cannot be unpacked."""

    def __init__(self, position: int, physical_offset: int, reason: str) -> None:
        self.position = position
        self.physical_offset = physical_offset
        self.reason = reason
        super().__init__(f"the message at physical offset {physical_offset}: {reason}")


def member_records(buffer: Buffer, positions: list[int]) -> tuple[bytes, list[int]]:
    """Records of all members, back to back, and how many each batch has."""
    records: list[bytes] = []
    counts: list[int] = []
    for position in positions:
        found = _members(buffer, position)
        records += found
        counts.append(len(found))
    return b"".join(records), counts


def _members(buffer: Buffer, position: int) -> list[bytes]:
    (sys_flag,) = _INT.unpack_from(buffer, position + SYS_FLAG_AT)
    layout = head_struct(sys_flag)
    head = list(layout.unpack_from(buffer, position))
    body_at = position + layout.size
    topic_at = body_at + head[_BODY_LENGTH]
    length = TOPIC_LENGTH_V2 if head[_MAGIC] == MAGIC_V2 else TOPIC_LENGTH_V1
    topic_end = topic_at + length.size + length.unpack_from(buffer, topic_at)[0]
    topic = bytes(buffer[topic_at:topic_end])
    try:
        elements = decode_batch(plain_body(bytes(buffer[body_at:topic_at]), sys_flag))
    except DataError as error:
        raise BadBody(position, head[_PHYSICAL_OFFSET], str(error)) from error
    base = head[_QUEUE_OFFSET]
    head[_SYS_FLAG] = sys_flag & ~_OF_THE_BATCH
    records = []
    for number, element in enumerate(elements):
        head[_QUEUE_OFFSET] = base + number
        records.append(_member(layout, head, element, topic))
    return records


def _member(layout: Struct, head: list[int | bytes], element: BatchElement, topic: bytes) -> bytes:
    head[_FLAG] = element.flag
    head[_BODY_LENGTH] = len(element.body)
    tail = topic + PROPERTIES_LENGTH.pack(len(element.properties)) + element.properties
    head[_SIZE] = layout.size + len(element.body) + len(tail)
    return layout.pack(*head) + element.body + tail
