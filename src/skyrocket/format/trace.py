"""Traces of messages: what the body of a message in the trace topic says.

    Pub 0x01 field 0x01 … 0x02 SubBefore 0x01 field 0x01 … 0x02 …

A record is the name of its kind and its fields, all text. Java writes what is missing as `null`. Fields came over time:
a send without the offset id, or with the client's host at the end, is read as well, and the end of a call without its
time and group. Kinds that are not known are passed over.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias, get_type_hints

from skyrocket.errors import DataError

_NULL: Final = "null"
_FIELD_END: Final = "\x01"
_RECORD_END: Final = "\x02"
_SEPARATORS: Final = {1: " ", 2: " "}  # in a text of others: nobody could read the record any more
_PARTS_WITHOUT_OFFSET_ID: Final = 13  # the name included
_OFFSET_ID_AT: Final = 12


class SendKind(IntEnum):
    """What kind of message was sent."""

    NORMAL = 0
    HALF = 1
    TRANSACTION_END = 2
    DELAY = 3
    ORDER = 4


class CallOutcome(IntEnum):
    """What became of a handler's call."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    RETURNED_NULL = 3
    FAILED = 4


@dataclass(frozen=True, slots=True)
class Sent:
    """A broker has taken a message."""

    timestamp: int  # when the attempt began
    region: str | None
    group: str
    topic: str
    message_id: str
    tags: str | None
    keys: str | None  # separated by blanks
    store_host: str
    body_length: int
    cost_ms: int
    kind: SendKind
    offset_message_id: str | None
    succeeded: bool
    client_host: str = ""


@dataclass(frozen=True, slots=True)
class CallBegan:
    """A message is given to a consumer's handler."""

    timestamp: int
    region: str | None
    group: str
    request_id: str  # of the call, as in CallEnded
    message_id: str
    retry_times: int
    keys: str | None
    client_host: str = ""


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The handler has returned."""

    request_id: str
    message_id: str
    cost_ms: int  # its share of the call
    succeeded: bool
    keys: str | None
    outcome: CallOutcome
    timestamp: int | None = None
    group: str | None = None
    client_host: str = ""


@dataclass(frozen=True, slots=True)
class TransactionEnded:
    """A producer tells how a transaction ended."""

    timestamp: int
    region: str | None
    group: str
    topic: str
    message_id: str
    tags: str | None
    keys: str | None
    store_host: str
    kind: SendKind
    transaction_id: str
    state: str  # COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW
    from_check: bool
    client_host: str = ""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A producer has taken back a message that waited for its time."""

    timestamp: int
    region: str | None
    group: str
    topic: str
    message_id: str
    succeeded: bool
    client_host: str = ""


TraceEvent: TypeAlias = Sent | CallBegan | CallEnded | TransactionEnded | Recalled


class _Kind(NamedTuple):
    """How a field's value is written and read."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]


def _read_flag(text: str) -> bool:
    return text.lower() == "true"


_TEXT: Final = _Kind(str, str)
_MAYBE: Final = _Kind(
    lambda text: _NULL if text is None else text.translate(_SEPARATORS), lambda text: None if text == _NULL else text
)
_NUMBER: Final = _Kind(str, int)
_FLAG: Final = _Kind(lambda flag: "true" if flag else "false", _read_flag)
_KINDS: Final[dict[Any, _Kind]] = {
    str: _TEXT,
    str | None: _MAYBE,
    int: _NUMBER,
    int | None: _NUMBER,
    bool: _FLAG,
    SendKind: _Kind(lambda kind: str(int(kind)), lambda text: SendKind(int(text))),
    CallOutcome: _Kind(lambda outcome: str(int(outcome)), lambda text: CallOutcome(int(text))),
}
_CLIENT_HOST: Final = "client_host"  # not written by us; others add it to sends


class _Layout(NamedTuple):
    """The record of one kind of event: its fields in their order."""

    name: str
    event: type[Any]
    fields: dict[str, _Kind]
    needed: int  # how many of the fields are always there


def _layout(name: str, event: type[Any], needed: int, **others: _Kind) -> _Layout:
    kinds = {field: others.get(field) or _KINDS[hint] for field, hint in get_type_hints(event).items()}
    return _Layout(name, event, {field: kind for field, kind in kinds.items() if field != _CLIENT_HOST}, needed)


_LAYOUTS: Final = (
    _layout("Pub", Sent, 13),
    _layout("SubBefore", CallBegan, 7),
    _layout("SubAfter", CallEnded, 5, group=_TEXT),
    _layout("EndTransaction", TransactionEnded, 12),
    _layout("Recall", Recalled, 6),
)
_BY_NAME: Final = {layout.name: layout for layout in _LAYOUTS}
_BY_EVENT: Final = {layout.event: layout for layout in _LAYOUTS}


def encode_event(event: TraceEvent) -> str:
    """Its record."""
    layout = _BY_EVENT[type(event)]
    values = [(getattr(event, name), kind) for name, kind in layout.fields.items()]
    while len(values) > layout.needed and values[-1][0] is None:
        values.pop()  # the end of a call in its older form
    parts = [layout.name, *(kind.write(value) for value, kind in values)]
    return _FIELD_END.join(parts) + _RECORD_END


def decode_trace(body: bytes) -> list[TraceEvent]:
    """What a body says; raises DataError for a record that cannot be read."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"a trace of {len(body)} bytes is not UTF-8 text: {error}") from None
    events = []
    for number, record in enumerate(text.split(_RECORD_END)):
        parts = record.split(_FIELD_END)
        layout = _BY_NAME.get(parts[0])
        if layout is not None:
            events.append(_decoded(layout, parts, number))
    return events


def _decoded(layout: _Layout, parts: list[str], number: int) -> TraceEvent:
    if layout.event is Sent and len(parts) == _PARTS_WITHOUT_OFFSET_ID:
        parts.insert(_OFFSET_ID_AT, _NULL)
    values = parts[1:]
    if layout.event is CallEnded and len(values) == layout.needed:
        values.append("0" if _read_flag(values[3]) else "4")  # before there were outcomes
    if len(values) < layout.needed:
        raise DataError(f"trace record {number}: {layout.name} has {len(values)} fields, {layout.needed} are needed")
    if layout.event is CallEnded and len(values) < len(layout.fields):
        values = values[:6]  # without time and group; cloud servers leave an empty field in their place
    fields = layout.fields | ({_CLIENT_HOST: _TEXT} if layout.event is Sent else {})
    try:
        read = {name: kind.read(text) for (name, kind), text in zip(fields.items(), values, strict=False)}
    except ValueError as error:
        raise DataError(f"trace record {number}: {layout.name} has a field that cannot be read: {error}") from None
    event: TraceEvent = layout.event(**read)
    return event
