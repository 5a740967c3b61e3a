"""Types for the annotations of bodies whose JSON `fastjson.bean` cannot know by itself: queues and Java's enums."""

from typing import Annotated

from skyrocket.fastjson import Json, JsonKey, ObjectKey, loads
from skyrocket.fastjson.bean import INTEGER, TEXT, KeyKind, Kind, WrongShape, enum_of
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.codes import LanguageCode


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


def _queue_of_key(key: JsonKey) -> MessageQueue:
    if isinstance(key, ObjectKey):
        return _queue(key.fields())
    return _queue(loads(str(key)))  # RocketMQ: up to 5.3 a key may be JSON in quotes


# As the key of a map a queue is an object, unquoted. Java 5.4.0 refuses one in quotes.
Queue = Annotated[
    MessageQueue,
    Kind(_queue, lambda queue, _dialect: _queue_fields(queue)),
    KeyKind(_queue_of_key, lambda queue: ObjectKey(_queue_fields(queue).items())),
]

# Enums; one that we do not know is None.
ConsumeType = Annotated[str | None, enum_of("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP")]
MessageModel = Annotated[str | None, enum_of("BROADCASTING", "CLUSTERING")]
ConsumeFromWhere = Annotated[
    str | None,
    enum_of(
        "CONSUME_FROM_LAST_OFFSET",
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        "CONSUME_FROM_MIN_OFFSET",
        "CONSUME_FROM_MAX_OFFSET",
        "CONSUME_FROM_FIRST_OFFSET",
        "CONSUME_FROM_TIMESTAMP",
    ),
]
PullOrPop = Annotated[str | None, enum_of("PULL", "POP")]
Language = Annotated[str | None, enum_of(*(language.name for language in LanguageCode))]
