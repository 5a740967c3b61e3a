"""Why a message became a dead letter: our consumers write it into its properties, tools read it.

    SKY_DLQ_ERROR      type of the exception, as shop.errors.OutOfStock
    SKY_DLQ_MESSAGE    its text
    SKY_DLQ_TRACE      the end of its traceback
    SKY_DLQ_HOST       host and client that gave up
    SKY_DLQ_ATTEMPTS   JSON: [number, milliseconds since 1970, host, error] of the attempts that this client saw

All have a bound; where the properties of a message leave too little room, the longest go first.
"""

import json
import traceback
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, NamedTuple

from skyrocket.client.core.message import ReceivedMessage
from skyrocket.format.properties import MAX_BYTES

ERROR: Final = "SKY_DLQ_ERROR"
MESSAGE: Final = "SKY_DLQ_MESSAGE"
TRACE: Final = "SKY_DLQ_TRACE"
HOST: Final = "SKY_DLQ_HOST"
ATTEMPTS: Final = "SKY_DLQ_ATTEMPTS"
CAUSE_PROPERTIES: Final = (ERROR, MESSAGE, TRACE, HOST, ATTEMPTS)

_MOST_MESSAGE: Final = 1024
_MOST_TRACE: Final = 4096
_MOST_ATTEMPTS: Final = 32
_MOST_ERROR: Final = 200
_MESSAGES_IN_MIND: Final = 1000
_FOR_THE_BROKER: Final = 1024  # region, cluster and the like, which it adds itself


class Attempt(NamedTuple):
    """One call of the handler that failed."""

    number: int  # 1 is the first delivery
    at_ms: int
    host: str
    error: str


@dataclass(frozen=True, slots=True)
class DeadLetterCause:
    """What is known about the end of a message."""

    error_type: str
    error_message: str
    traceback: str
    host: str
    attempts: tuple[Attempt, ...]


class FailedAttempts:
    """The attempts that this client saw, for the messages that failed last; others may have seen more."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._of_message: OrderedDict[str, list[Attempt]] = OrderedDict()

    def add(self, message: ReceivedMessage, error: BaseException | None, now_ms: int) -> None:
        """A handler failed."""
        attempts = self._of_message.setdefault(message.message_id, [])
        self._of_message.move_to_end(message.message_id)
        text = _cut(f"{type_name(error)}: {error}" if error is not None else _STATUS, _MOST_ERROR)
        attempts.append(Attempt(message.reconsume_times + 1, now_ms, self.host, text))
        del attempts[:-_MOST_ATTEMPTS]
        if len(self._of_message) > _MESSAGES_IN_MIND:
            self._of_message.popitem(last=False)

    def of(self, message: ReceivedMessage) -> tuple[Attempt, ...]:
        return tuple(self._of_message.get(message.message_id, ()))

    def forget(self, message: ReceivedMessage) -> None:
        """It is somebody else's now."""
        self._of_message.pop(message.message_id, None)


_STATUS: Final = "the handler returned RECONSUME_LATER"


def cause_properties(
    error: BaseException | None, host: str, attempts: tuple[Attempt, ...], used_bytes: int
) -> dict[str, str]:
    """The properties to add to a message that has `used_bytes` of them already."""
    found = {
        ERROR: _cut(type_name(error), _MOST_ERROR),
        HOST: _cut(host, _MOST_ERROR),
        MESSAGE: _cut(str(error) if error is not None else _STATUS, _MOST_MESSAGE),
        ATTEMPTS: json.dumps(attempts, ensure_ascii=False, separators=(",", ":")),
        TRACE: "" if error is None else _tail("".join(traceback.format_exception(error)), _MOST_TRACE),
    }
    found = {name: value for name, value in found.items() if value.strip()}
    room = MAX_BYTES - _FOR_THE_BROKER - used_bytes
    for name in (TRACE, ATTEMPTS, MESSAGE, HOST, ERROR):
        if sum(len(key) + len(value.encode()) + 2 for key, value in found.items()) > room:
            found.pop(name, None)
    return found


def cause_of(message: ReceivedMessage) -> DeadLetterCause | None:
    """What a consumer of ours has written; None for dead letters of other clients."""
    properties = message.properties
    if ERROR not in properties:
        return None
    try:
        attempts = tuple(Attempt(*each) for each in json.loads(properties.get(ATTEMPTS, "[]")))
    except (ValueError, TypeError):  # somebody else's property of that name
        attempts = ()
    return DeadLetterCause(
        properties[ERROR], properties.get(MESSAGE, ""), properties.get(TRACE, ""), properties.get(HOST, ""), attempts
    )


def type_name(error: BaseException | None) -> str:
    """As one would import it."""
    if error is None:
        return "RECONSUME_LATER"
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _cut(text: str, most: int) -> str:
    return _clean(text)[:most].decode("utf-8", "ignore")


def _tail(text: str, most: int) -> str:
    return _clean(text)[-most:].decode("utf-8", "ignore")


def _clean(text: str) -> bytes:
    """0x01 and 0x02 separate properties; half a surrogate pair cannot be encoded."""
    return text.replace("\x01", " ").replace("\x02", " ").encode("utf-8", "replace")
