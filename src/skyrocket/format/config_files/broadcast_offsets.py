"""`offsets.json` of a client that consumes in broadcast mode: it keeps its progress itself.

The keys of its table are objects, which is not standard JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.fastjson import Dialect, FastJsonError, Json, JsonKey, ObjectKey, dumps, loads
from skyrocket.fastjson.bean import INTEGER, TEXT, KeyKind, WrongShape, bean
from skyrocket.model.message_queue import MessageQueue


def _queue(key: JsonKey) -> MessageQueue:
    fields = _fields_of(key)
    if not isinstance(fields, dict) or not {"topic", "brokerName", "queueId"} <= fields.keys():
        raise WrongShape(f"expected a queue as key, found {key!r}")
    return MessageQueue(TEXT.read(fields["topic"]), TEXT.read(fields["brokerName"]), INTEGER.read(fields["queueId"]))


def _fields_of(key: JsonKey) -> Json:
    if isinstance(key, ObjectKey):
        return key.fields()
    # RocketMQ: up to 5.3 the object may also come as JSON text within quotes.
    try:
        return loads(key) if isinstance(key, str) else key
    except FastJsonError:
        return key


def _queue_key(queue: MessageQueue) -> JsonKey:
    return ObjectKey((("brokerName", queue.broker_name), ("queueId", queue.queue_id), ("topic", queue.topic)))


MESSAGE_QUEUE_KEY: KeyKind[MessageQueue] = KeyKind(_queue, _queue_key)


@dataclass(frozen=True, slots=True)
class BroadcastOffsets:
    """Content of the file: queue → next queue offset to consume."""

    offsets: Annotated[dict[Annotated[MessageQueue, MESSAGE_QUEUE_KEY], int], "offsetTable"] = field(
        default_factory=dict
    )
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_BROADCAST_OFFSETS = bean(BroadcastOffsets)


def decode(data: bytes) -> BroadcastOffsets:
    """The content of the file; raises DataError where it is not."""
    return _BROADCAST_OFFSETS.read(loads(data))


def encode(offsets: BroadcastOffsets, dialect: Dialect) -> bytes:
    """The bytes of the file."""
    return dumps(_BROADCAST_OFFSETS.write(offsets, dialect), dialect)
