"""BATCH_ACK_MESSAGE: many popped messages acknowledged at once."""

import base64
import binascii
from collections.abc import Iterable
from typing import Annotated

from skyrocket.fastjson import Json
from skyrocket.fastjson.bean import TEXT, Kind, WrongShape, bean, tuple_of
from skyrocket.protocol.bodies.json_body import BodyBase, body

_LONG_NAMES = {
    "consumerGroup": "c",
    "topic": "t",
    "retry": "r",
    "startOffset": "so",
    "queueId": "q",
    "reviveQueueId": "rq",
    "popTime": "pt",
    "invisibleTime": "it",
    "bitSet": "b",
}


_MAX_BIT_SET_BYTES = 8 << 10  # a check point covers at most as many messages as were popped together


def _bits(value: Json) -> frozenset[int]:
    try:
        data = base64.b64decode(TEXT.read(value), validate=True)
    except (binascii.Error, ValueError):
        raise WrongShape("expected a bit set in Base64") from None
    if len(data) > _MAX_BIT_SET_BYTES:
        raise WrongShape(f"a bit set of {len(data)} bytes")
    return frozenset(at * 8 + bit for at, byte in enumerate(data) for bit in range(8) if byte >> bit & 1)


def _bits_text(numbers: Iterable[int]) -> str:
    """BitSet.toByteArray: little-endian, no zero byte at the end."""
    data = bytearray()
    for number in numbers:
        at = number // 8
        data.extend(bytes(max(at + 1 - len(data), 0)))
        data[at] |= 1 << number % 8
    return base64.b64encode(data).decode()


@body
class BatchAckEntry(BodyBase):
    """Messages of one check point; `acked` are offsets relative to `start_offset`."""

    group: Annotated[str, "c"] = ""
    topic: Annotated[str, "t"] = ""
    retry: Annotated[str, "r"] = "0"
    start_offset: Annotated[int, "so"] = 0
    queue_id: Annotated[int, "q"] = 0
    revive_queue_id: Annotated[int, "rq"] = 0
    pop_time: Annotated[int, "pt"] = 0
    invisible_time: Annotated[int, "it"] = 0
    acked: Annotated[frozenset[int], "b", Kind(_bits, lambda numbers, _dialect: _bits_text(numbers))] = frozenset()


_ENTRY = bean(BatchAckEntry)


def _entry(value: Json) -> BatchAckEntry:
    if isinstance(value, dict):
        value = {_LONG_NAMES.get(str(name), name): part for name, part in value.items()}
    return _ENTRY.read(value)


@body
class BatchAck(BodyBase):
    """The body."""

    broker_name: str | None = None
    entries: Annotated[tuple[BatchAckEntry, ...], "acks", tuple_of(Kind(_entry, _ENTRY.write))] = ()
