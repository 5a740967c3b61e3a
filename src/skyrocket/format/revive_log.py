"""What pop writes into its revive log: check points of messages that were handed out, and acknowledgements.

A check point (tag `ck`) names messages of one queue that were popped together; an acknowledgement (`ack`, `bAck` for
several) names the check point by where it starts and when it was popped. Bodies are plain JSON with short names.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from skyrocket.errors import DataError

CHECK_POINT_TAG: Final = "ck"
ACK_TAG: Final = "ack"
BATCH_ACK_TAG: Final = "bAck"
MAX_MESSAGES: Final = 32  # bits of the map; a pop hands out no more

_LONG_NAMES: Final = {
    "ackOffset": "ao",
    "ackOffsetList": "aol",
    "startOffset": "so",
    "consumerGroup": "c",
    "topic": "t",
    "queueId": "q",
    "popTime": "pt",
    "brokerName": "bn",
}


class CheckPointKey(NamedTuple):
    """What an acknowledgement has in common with its check point."""

    topic: str
    group: str
    queue_id: int
    start_offset: int
    pop_time: int
    broker_name: str


@dataclass(slots=True)
class CheckPoint:
    """Messages of one queue that a group was handed at one time; `acked` has a bit for each of `distances`."""

    key: CheckPointKey
    invisible_ms: int
    distances: tuple[int, ...]  # of each message's queue offset to the start
    acked: int = 0
    put_again: int | None = None  # how often reviving it failed

    @property
    def revive_time(self) -> int:
        """From when on the messages may be handed out again."""
        return self.key.pop_time + self.invisible_ms

    def add(self, distances: Sequence[int]) -> None:
        """Hold these messages as well, where they are not held yet."""
        self.distances += tuple(distance for distance in distances if distance not in self.distances)

    def acknowledge(self, queue_offset: int) -> bool:
        """Whether the message is one of these."""
        try:
            self.acked |= 1 << self.distances.index(queue_offset - self.key.start_offset)
        except ValueError:
            return False
        return True

    def unacknowledged(self) -> list[int]:
        """Queue offsets of messages that nobody acknowledged."""
        start = self.key.start_offset
        return [start + distance for bit, distance in enumerate(self.distances) if not self.acked >> bit & 1]

    def unique_key(self) -> str:
        """Of the message that keeps it."""
        return _unique_key(self.key, self.key.start_offset, CHECK_POINT_TAG)

    def encode(self) -> bytes:
        """The body of that message."""
        key = self.key
        fields: dict[str, Any] = {
            "bm": self.acked,
            "bn": key.broker_name,
            "c": key.group,
            "d": list(self.distances),
            "it": self.invisible_ms,
            "n": len(self.distances),
            "pt": key.pop_time,
            "q": key.queue_id,
            "reviveTime": self.revive_time,  # RocketMQ: derived, written all the same
            "ro": 0,
        }
        if self.put_again is not None:
            fields["rp"] = str(self.put_again)
        return _encoded({**fields, "so": key.start_offset, "t": key.topic})


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """These messages are done."""

    key: CheckPointKey
    queue_offsets: Sequence[int] = field(default_factory=tuple)
    is_batch: bool = False

    @property
    def tag(self) -> str:
        return BATCH_ACK_TAG if self.is_batch else ACK_TAG

    def unique_key(self) -> str:
        """Of the message that keeps it."""
        # RocketMQ: one of several has the single one's key, with -1 for the offset.
        return _unique_key(self.key, -1 if self.is_batch else self.queue_offsets[0], ACK_TAG)

    def encode(self) -> bytes:
        """The body of that message."""
        key = self.key
        fields: dict[str, Any] = {"ao": -1 if self.is_batch else self.queue_offsets[0]}
        if self.is_batch:
            fields["aol"] = list(self.queue_offsets)
        fields |= {"bn": key.broker_name, "c": key.group, "pt": key.pop_time}
        return _encoded({**fields, "q": key.queue_id, "so": key.start_offset, "t": key.topic})


def decode_check_point(body: bytes) -> CheckPoint:
    """Raises DataError for what is not a check point."""
    fields = _decoded(body)
    count = _number(fields, "n", 0)
    listed = fields.get("d")
    # Old ones have no distances: their messages follow each other.
    distances = tuple(range(count)) if listed is None else tuple(_numbers(listed))
    if not distances or len(distances) > MAX_MESSAGES:
        raise DataError(f"a check point of {len(distances)} messages, not 1 to {MAX_MESSAGES}")
    again = fields.get("rp")
    return CheckPoint(
        _key(fields),
        _number(fields, "it"),
        distances,
        _number(fields, "bm", 0) & 0xFFFFFFFF,
        None if again is None else _whole(again),
    )


def decode_acknowledgement(body: bytes) -> Acknowledgement:
    """One message or several; raises DataError for what is neither."""
    fields = {_LONG_NAMES.get(name, name): value for name, value in _decoded(body).items()}
    listed = fields.get("aol")
    if listed is not None:
        return Acknowledgement(_key(fields), _numbers(listed), is_batch=True)
    return Acknowledgement(_key(fields), (_number(fields, "ao"),))


def _unique_key(key: CheckPointKey, offset: int, tag: str) -> str:
    return f"{key.topic}@{key.queue_id}@{offset}@{key.group}@{key.pop_time}@{key.broker_name}@{tag}"


def _encoded(fields: dict[str, Any]) -> bytes:
    return orjson.dumps(fields)


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        fields = orjson.loads(body)
    except ValueError as error:  # not UTF-8 is one, too
        raise DataError(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise DataError("not a JSON object")
    return fields


def _key(fields: dict[str, Any]) -> CheckPointKey:
    topic, group, broker_name = fields.get("t"), fields.get("c"), fields.get("bn")
    if not isinstance(topic, str) or not isinstance(group, str):
        raise DataError("topic (t) or group (c) is missing")
    queue_id, start_offset, pop_time = (_number(fields, name) for name in ("q", "so", "pt"))
    name = broker_name if isinstance(broker_name, str) else ""
    return CheckPointKey(topic, group, queue_id, start_offset, pop_time, name)


def _number(fields: dict[str, Any], name: str, default: int | None = None) -> int:
    value = fields.get(name, default)
    if value is None:
        raise DataError(f"{name} is missing")
    return _whole(value)


def _whole(value: object) -> int:
    if isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DataError(f"{value!r} is not a whole number")
    return value


def _numbers(values: object) -> list[int]:
    if not isinstance(values, list):
        raise DataError("the offsets are not a list")
    return [_whole(value) for value in values]
