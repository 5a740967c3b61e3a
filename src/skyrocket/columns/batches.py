"""Inner batches: one record whose body is several messages.

A batch that says "unwrap me" is several messages for a consumer, with consecutive queue offsets. Such records are rare,
so each member is written as a record of its own, and the vectorised decoder reads these.
"""

from skyrocket.errors import DataError
from skyrocket.format import sys_flag as flags
from skyrocket.format.batch import BatchElement, decode_batch
from skyrocket.format.compression import plain_body
from skyrocket.format.record import PROPERTIES_LENGTH, Buffer, FixedPart, head_struct, read_fixed, topic_end

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
    fixed, body_at = read_fixed(buffer, position)
    topic_at = body_at + fixed.body_length
    topic = bytes(buffer[topic_at : topic_end(buffer, topic_at, fixed.magic)])
    try:
        elements = decode_batch(plain_body(bytes(buffer[body_at:topic_at]), fixed.sys_flag))
    except DataError as error:
        raise BadBody(position, fixed.physical_offset, str(error)) from error
    fixed = fixed._replace(sys_flag=fixed.sys_flag & ~_OF_THE_BATCH)
    return [_member(fixed, number, element, topic) for number, element in enumerate(elements)]


def _member(batch: FixedPart, number: int, element: BatchElement, topic: bytes) -> bytes:
    layout = head_struct(batch.sys_flag)
    tail = topic + PROPERTIES_LENGTH.pack(len(element.properties)) + element.properties
    fixed = batch._replace(
        size=layout.size + len(element.body) + len(tail),
        flag=element.flag,
        queue_offset=batch.queue_offset + number,
        body_length=len(element.body),
    )
    return layout.pack(*fixed) + element.body + tail
