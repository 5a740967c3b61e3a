"""A message as a line of JSON: what `consume --format json` writes, `produce --json` reads.

    {"body": "paid", "tags": "TagA", "keys": ["o-1"], "properties": {"price": "12"}, "sharding_key": "o-1"}
    {"body": {"any": "JSON"}, "delay": "10s"}

A body that is not UTF-8 stands as `body_base64`; a body that is not a string is sent as its JSON text.
"""

import base64
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from skyrocket.cli.program.moments import moment_of, seconds_of
from skyrocket.client import Message, ReceivedMessage
from skyrocket.errors import ConfigError
from skyrocket.model.property_names import RESERVED, SHARDING_KEY

# Written by `consume`; without meaning for a new message.
_FACTS: Final = frozenset(
    """topic message_id offset_message_id broker queue_id queue_offset born_at stored_at born_host reconsume_times
    system groups""".split()
)
_FIELDS: Final = frozenset("body body_base64 tags keys properties sharding_key delay delay_level deliver_at".split())


@dataclass(frozen=True, slots=True)
class Template:
    """What options say about every message; a line of JSON may say otherwise."""

    topic: str
    tags: str | None = None
    keys: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    sharding_key: str | None = None
    delay: float | None = None
    delay_level: int = 0
    deliver_at: datetime | None = None

    def message(self, body: bytes) -> Message:
        """With a body that was given as it is."""
        return Message(
            self.topic,
            body,
            self.tags,
            self.keys,
            self.properties,
            self.sharding_key,
            self.delay_level,
            self.delay,
            self.deliver_at,
        )

    def message_of_line(self, line: bytes) -> Message:
        """From a line of JSON; raises ConfigError that says what is wrong with it."""
        try:
            given = json.loads(line)
        except ValueError as error:
            raise ConfigError(f"it is not JSON ({error}): leave out --json to send lines as they are") from None
        if not isinstance(given, dict):
            raise ConfigError(f'it is {type(given).__name__}, not an object: write {{"body": …}}')
        unknown = sorted(given.keys() - _FIELDS - _FACTS)
        if unknown:
            raise ConfigError(
                f"{unknown[0]!r} is not a field of a message; the fields are {', '.join(sorted(_FIELDS))}"
            )
        message = self.message(_body(given))
        if "tags" in given:
            message.tags = _text("tags", given["tags"])
        if "keys" in given:
            keys = given["keys"]
            message.keys = (
                [_text("keys", key) or "" for key in keys] if isinstance(keys, list) else _text("keys", keys) or ()
            )
        if "properties" in given:
            message.properties = {**self.properties, **_properties(given["properties"])}
        if "sharding_key" in given:
            message.sharding_key = _text("sharding_key", given["sharding_key"])
        if given.keys() & {"delay", "delay_level", "deliver_at"}:
            message.delay, message.delay_level, message.deliver_at = _timing(given)
        return message


def _body(given: dict[str, Any]) -> bytes:
    if "body_base64" in given:
        try:
            return base64.b64decode(given["body_base64"], validate=True)
        except (TypeError, ValueError):
            raise ConfigError("body_base64 is not Base64") from None
    if "body" not in given:
        raise ConfigError("it has neither body nor body_base64")
    body = given["body"]
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _text(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ConfigError(f"{name} is {value!r}: give text")


def _properties(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ConfigError(f"properties is {value!r}: give an object of names and values")
    return {name: each if isinstance(each, str) else json.dumps(each) for name, each in value.items()}


def _timing(given: dict[str, Any]) -> tuple[float | None, int, datetime | None]:
    delay, level, moment = given.get("delay"), given.get("delay_level") or 0, given.get("deliver_at")
    if not isinstance(level, int):
        raise ConfigError(f"delay_level is {level!r}: give a number from 1 to 18")
    return (
        None if delay is None else seconds_of(str(delay)),
        level,
        None if moment is None else moment_of(str(moment)),
    )


def described(message: ReceivedMessage) -> dict[str, Any]:
    """A received message as JSON can hold it; the system's own properties stand apart."""
    own = {name: value for name, value in message.properties.items() if not _is_systems(name)}
    shown: dict[str, Any] = {
        "topic": message.topic,
        "message_id": message.message_id,
        "offset_message_id": message.offset_message_id,
        "broker": message.broker_name,
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "born_at": iso(message.born_timestamp),
        "stored_at": iso(message.store_timestamp),
        "born_host": message.born_host,
        "reconsume_times": message.reconsume_times,
    }
    if message.tags is not None:
        shown["tags"] = message.tags
    if message.keys:
        shown["keys"] = message.keys
    if message.sharding_key is not None:
        shown["sharding_key"] = message.sharding_key
    if own:
        shown["properties"] = own
    shown["system"] = {
        name: value for name, value in message.properties.items() if _is_systems(name) and name not in ("TAGS", "KEYS")
    }
    try:
        shown["body"] = message.body.decode()
    except UnicodeDecodeError:
        shown["body_base64"] = base64.b64encode(message.body).decode()
    return shown


def _is_systems(name: str) -> bool:
    return name in RESERVED or name == SHARDING_KEY


def iso(at_ms: int) -> str:
    """Local time to the millisecond, with its zone; the bare number where no calendar has it: clients may say any."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone().isoformat(timespec="milliseconds")
    except (OverflowError, ValueError):
        return str(at_ms)
