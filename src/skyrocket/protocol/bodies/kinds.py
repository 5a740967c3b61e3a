"""Kinds of values that many bodies share, beside those of `fastjson.bean`."""

from typing import Any

from skyrocket.fastjson import Json, JsonKey, ObjectKey, loads
from skyrocket.fastjson.bean import INTEGER, TEXT, KeyKind, Kind, WrongShape
from skyrocket.model.message_queue import MessageQueue


def _number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise WrongShape("expected a number")
    try:
        return float(value)
    except ValueError:
        raise WrongShape(f"expected a number, found {value[:40]!r}") from None  # type: ignore[index]


NUMBER: Kind[float] = Kind(_number)
ANYTHING: Kind[Any] = Kind(lambda value: value)


def enum_of(*names: str) -> Kind[str | None]:
    """A Java enum: its name in any letter case, or its number; what is unknown is None."""
    by_name = {name.upper(): name for name in names}

    def read(value: Json) -> str | None:
        if isinstance(value, int):
            return names[value] if 0 <= value < len(names) else None
        return by_name.get(str(value).upper())

    return Kind(read)


def _queue(value: Json) -> MessageQueue:
    if not isinstance(value, dict):
        raise WrongShape("expected a message queue")
    return MessageQueue(
        TEXT.read(value.get("topic") or ""),
        TEXT.read(value.get("brokerName") or ""),
        INTEGER.read(value.get("queueId") or 0),
    )


def _queue_fields(queue: MessageQueue) -> dict[JsonKey, Json]:
    return {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}


MESSAGE_QUEUE: Kind[MessageQueue] = Kind(_queue, lambda queue, _dialect: _queue_fields(queue))


def _queue_of_key(key: JsonKey) -> MessageQueue:
    if isinstance(key, ObjectKey):
        return _queue(key.fields())
    return _queue(loads(str(key)))  # RocketMQ: up to 5.3 a key may be JSON in quotes


# A map by message queues: the key is an object, unquoted. Java 5.4.0 refuses one in quotes.
MESSAGE_QUEUE_KEY: KeyKind[MessageQueue] = KeyKind(_queue_of_key, lambda queue: ObjectKey(_queue_fields(queue).items()))

CONSUME_TYPE = enum_of("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP")
MESSAGE_MODEL = enum_of("BROADCASTING", "CLUSTERING")
CONSUME_FROM_WHERE = enum_of(
    "CONSUME_FROM_LAST_OFFSET",
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
    "CONSUME_FROM_FIRST_OFFSET",
    "CONSUME_FROM_TIMESTAMP",
)
REQUEST_MODE = enum_of("PULL", "POP")
