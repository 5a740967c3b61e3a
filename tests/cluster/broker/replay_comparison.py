"""In what our broker's words differ from the real one's; addresses, ports and counters of tables may."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from skyrocket.fastjson import loads
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from tests.cluster.broker.broker_replay import comparable_body
from tests.cluster.broker.conversation import Deed, Step
from tests.cluster.broker.replay_beginning import RECORD_ANSWERS, records_of
from tests.cluster.broker.replay_player import Heard

_HASHED_PORT: Final = "<port>"
_MESSAGE_ID: Final = re.compile(r"[0-9A-F]{16}(?=[0-9A-F]{16}(,|$))")  # the host of an offset message id
_ADDRESS: Final = re.compile(r"\d+\.\d+\.\d+\.\d+:\d+|golden-host:\d+")
_PUSHED_AT: Final = re.compile(r"(?<=PUSH_REPLY_TIME\x01)\d+")
_TIMES: Final = frozenset({"indexLastUpdateTimestamp", "popTime", "storeTimestamp", "timestamp"})
_SEE: Final = re.compile(r"See https?://\S+")
# Bodies in which numbers, times and names of one machine stand: members and kinds of values are compared.
_BY_SHAPE: Final = frozenset({202, 203, 204, 208, 222, 307, 309, 315, 321, 328})


_POPS: Final = frozenset({RequestCode.POP_MESSAGE, RequestCode.PEEK_MESSAGE})
_ASKED_WITH_RECORD: Final = (RequestCode.CONSUME_MESSAGE_DIRECTLY, RequestCode.CHECK_TRANSACTION_STATE)


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same."""

    place: str  # file:line of what the real broker said
    code: int  # of the request
    what: str
    ours: Any
    theirs: Any
    remark: str | None = None  # of our answer

    def __str__(self) -> str:
        return f"{self.place} [{self.code}] {self.what} is {self.ours!r}, not {self.theirs!r}"


@dataclass(frozen=True)
class Known:
    """What both brokers have in common."""

    places: set[int]  # physical offsets
    unique_keys: frozenset[str]  # of messages; all others are of a broker's making


def differences(heard: Heard, file: str, known: Known) -> list[Difference]:
    """Nothing, if our broker said the same."""
    step, command = heard.step, heard.command
    if step is None:
        assert command is not None
        if heard.request is not None:
            said = (command.code, command.remark)
            return [Difference(str(heard.request), heard.request.code, "answer", said, None, command.remark)]
        return [Difference(f"{file}:end", command.code, "request", command.ext_fields, None)]
    if step.deed is Deed.IS_CUT_OFF:
        return [] if heard.is_closed else [Difference(str(step), 0, "end", "left open", "closed")]
    if command is None:
        return [Difference(str(step), step.code, "words", "closed" if heard.is_closed else None, step.code)]
    pairs = _pairs(step, command, known)
    return [
        Difference(str(step), step.code, what, ours, theirs, command.remark)
        for what, ours, theirs in pairs
        if ours != theirs
    ]


def _pairs(step: Step, command: RemotingCommand, known: Known) -> Iterator[tuple[str, Any, Any]]:
    theirs = step.header
    assert step.frame is not None
    yield "code", command.code, theirs["code"]
    yield "flag", command.flag, theirs["flag"]
    yield "language", command.language.name if command.language is not None else None, theirs["language"]
    yield "serialisation", command.serialize_type.name, theirs["serializeTypeCurrentRPC"]
    if not _is_of_java(theirs.get("remark")):
        yield "remark", _plain(command.remark), _plain(theirs.get("remark"))
    ours, real = command.ext_fields, theirs.get("extFields")
    yield "fields", None if ours is None else list(ours), None if real is None else list(real)
    if ours is not None and real is not None:
        for name in ours.keys() & real.keys():
            yield f"field {name}", _value(name, ours[name], step, known), _value(name, real[name], step, known)
    if command.code == theirs["code"]:
        yield from _bodies(step, bytes(command.body), known)


def _is_of_java(remark: Any) -> bool:
    """Texts of exceptions with the place in RocketMQ's source."""
    return re.match(r"(java|org\.apache|com\.alibaba)\.|Cannot invoke ", str(remark)) is not None


def _plain(text: str | None) -> str | None:
    return None if text is None else _SEE.sub("See FAQ", _ADDRESS.sub("<address>", text))


def _value(name: str, value: str, step: Step, known: Known) -> Any:
    if name in _TIMES:
        return "<time>" if int(value) > 0 else value
    if name == "indexLastUpdatePhyoffset":
        return value if int(step.answer_fields[name]) in known.places else "<place>"
    if name in ("commitLogOffset", "offsetMsgId"):  # of a half message that was moved behind what was written meanwhile
        return "<place>"
    if name == "version":
        members: Any = loads(value)
        return sorted(members)
    if name == "transactionId" and value not in str(step.fields):  # the broker's own
        return len(value)
    if name == "properties":
        return sorted(_PUSHED_AT.sub("<time>", value).split("\x02"))
    return _MESSAGE_ID.sub("<host>", _ADDRESS.sub("<address>", value))


def _bodies(step: Step, ours: bytes, known: Known) -> Iterator[tuple[str, Any, Any]]:
    theirs = step.body
    yield "presence of a body", bool(ours), bool(theirs)
    if not ours or not theirs:
        return
    if step.deed is Deed.IS_ANSWERED and step.code in RECORD_ANSWERS | _POPS:
        yield from _record_pairs(ours, theirs, known)
    elif step.deed is Deed.IS_ANSWERED and step.code == RequestCode.GET_BROKER_RUNTIME_INFO:
        return
    elif step.code == RequestCode.GET_TIMER_CHECK_POINT:
        yield "length of the body", len(ours), len(theirs)
    elif step.code in _ASKED_WITH_RECORD and step.deed is Deed.IS_ASKED:
        yield from _record_pairs(ours, theirs, known)
    elif step.deed is Deed.IS_ASKED:
        yield "body", ours, theirs
    elif step.code in _BY_SHAPE:
        yield "body", shape(loads(ours)), shape(loads(theirs))
    else:
        yield "body", _unordered(comparable_body(step.code, ours)), _unordered(comparable_body(step.code, theirs))


def _unordered(value: Any) -> Any:
    """Lists that come out of hash tables."""
    if isinstance(value, dict):
        return {name: _unordered(part) for name, part in value.items()}
    return sorted(map(_unordered, value), key=str) if isinstance(value, list) else value


def _record_pairs(ours: bytes, theirs: bytes, known: Known) -> Iterator[tuple[str, Any, Any]]:
    """Part by part; the order of properties is by chance (Java's hash tables)."""
    own, real = _records(ours, known), _records(theirs, known)
    yield "number of records", len(own), len(real)
    for mine, other in zip(own, real, strict=False):
        for part, value in mine.items():
            yield f"record's {part}", value, other[part]


def _records(body: bytes, known: Known) -> list[dict[str, Any]]:
    return [
        {
            "topic": message.topic,
            "queue": (message.queue_id, message.queue_offset),
            "place": _known_place(message.physical_offset, known),
            "size": message.record_size,
            "flags": (message.flag, message.sys_flag, message.magic),
            "born": message.born_timestamp,
            "reconsumed": message.reconsume_times,
            "prepared": _known_place(message.prepared_transaction_offset, known),
            "body": (message.body_crc, message.body),
            "properties": {name: _property(name, value, known) for name, value in message.properties.items()},
        }
        for _, message in records_of(body)
    ]


def _known_place(physical_offset: int, known: Known) -> Any:
    return physical_offset if physical_offset in known.places else "elsewhere"


def _property(name: str, value: str, known: Known) -> Any:
    if name == "UNIQ_KEY" and value not in known.unique_keys:
        return len(value)
    return _MESSAGE_ID.sub("<host>", value) if name == "ORIGIN_MESSAGE_ID" else value


# Members of bodies whose names are data: all their values have one shape.
_TABLES: Final = frozenset(
    {"offsetTable", "subscriptionTable", "mqTable", "mqPopTable", "statusTable", "data", "table", "properties"}
)


def shape(value: Any, name: str = "") -> Any:
    """The members of a JSON value and their kinds."""
    if isinstance(value, Mapping):
        if name in _TABLES:
            return sorted({repr(shape(part)) for part in value.values()})
        return {str(key): shape(part, str(key)) for key, part in value.items()}
    if isinstance(value, list):
        return sorted({repr(shape(part)) for part in value})
    return type(value).__name__
