"""Writes the API page from the docstrings: python -m tests.unit.client.api_page > docs/reference/client-api.md"""

import dataclasses
import enum
import inspect
import re
import sys
import types
from collections.abc import Iterator

from skyrocket import client
from skyrocket.client import blocking
from skyrocket.client.tracing import otel

_HEADING = """# The client's API

Written from the docstrings by `python -m tests.unit.client.api_page > docs/reference/client-api.md`; a test fails when
a name is missing. How things work together is in the [client guide](../guides/client.md). Everything here is in
`skyrocket.client`; what most applications need is also in `skyrocket` itself. `skyrocket.client.blocking` has the same
classes without `await`.
"""
_SECTIONS = {
    "Sending": "Producer ProducerSettings TransactionProducer Transaction TransactionState Message SendReceipt "
    "SendStatus",
    "Consuming": "PushConsumer PushConsumerSettings LitePullConsumer LitePullSettings ReceivedMessage "
    "OffsetStorage SqlFilter RetryPolicy Depends publish reply Avro BodyCodec Middleware ClientMetrics "
    "ConsumeFromWhere MessageModel ConsumeStatus ReconsumeLater DeadLetter SuspendCurrentQueue",
    "Sharing queues": "Averagely AveragelyByCircle ConsistentHash ByConfig ByMachineRoom MachineRoomNearby "
    "MessageQueue",
    "Administration": "Admin BrokerPlace QueueLag GroupProgress TopicChange GroupChange SettingChange Right "
    "MessageTrack TrackType",
    "Settings and integrations": "ClientSettings Acl SendHook SendContext ConsumeHook ConsumeContext MessageContext "
    "current_message current_group",
}


def page() -> str:
    """The whole page."""
    names = list(client.__all__)
    parts = [_HEADING]
    listed = {name for line in _SECTIONS.values() for name in line.split()}
    errors = [name for name in names if name not in listed and _is_error(getattr(client, name))]
    others = [name for name in names if name not in listed and name not in errors]
    sections = {**{title: line.split() for title, line in _SECTIONS.items()}, "More": others, "Errors": errors}
    for title, members in sections.items():
        if members:
            parts.append(f"## {title}\n")
            parts += [_entry(name, getattr(client, name)) for name in members if name in names]
    parts.append("## skyrocket.client.tracing.otel\n")
    parts += [_entry(name, getattr(otel, name)) for name in ("SendSpans", "ConsumeSpans")]
    parts.append("## skyrocket.client.blocking\n")
    own = [kind for kind in vars(blocking).values() if inspect.isclass(kind) and kind.__module__ == blocking.__name__]
    parts += [f"- `{kind.__name__}`" for kind in own if not kind.__name__.startswith("_")]
    return "\n".join(parts).rstrip() + "\n"


def _is_error(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, Exception)


def _entry(name: str, value: object) -> str:
    if not inspect.isclass(value):
        if isinstance(value, types.FunctionType):
            return f"### {name}`{_signature(value)}`\n\n{_doc(value)}\n"
        return f"### {name}\n\ncontext variable.\n"
    lines = [f"### {name}{_constructor(value)}\n", _doc(value), ""]
    if not _is_error(value):
        lines += list(_members(value))
    return "\n".join(lines).rstrip() + "\n"


def _constructor(kind: type) -> str:
    if issubclass(kind, enum.Enum | BaseException) or _is_plain_data(kind):
        return ""
    if dataclasses.is_dataclass(kind) or kind.__init__ is not object.__init__:
        return f"`{_signature(kind.__init__)}`"
    return ""


def _is_plain_data(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) and len(dataclasses.fields(kind)) > 5


def _members(kind: type) -> Iterator[str]:
    if issubclass(kind, enum.Enum):
        yield ", ".join(f"`{member.name}`" for member in kind)
        return
    if dataclasses.is_dataclass(kind) and _is_plain_data(kind):
        yield "| field | default |"
        yield "|---|---|"
        for field in dataclasses.fields(kind):
            yield f"| `{field.name}` | {_default(field)} |"
        yield ""
    for name, member in _public(kind):
        if isinstance(member, property):
            yield f"- `{name}`: {_doc(member) or 'property'}"
        elif isinstance(member, classmethod | staticmethod):
            yield f"- `{name}{_signature(member.__func__)}`: {_doc(member.__func__)}"
        else:
            start = "await " if inspect.iscoroutinefunction(member) else ""
            yield f"- `{start}{name}{_signature(member)}`: {_doc(member)}"


def _public(kind: type) -> Iterator[tuple[str, object]]:
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("skyrocket."):
            continue
        for name, member in vars(base).items():
            is_shown = isinstance(member, property | classmethod | staticmethod) or inspect.isfunction(member)
            if is_shown and not name.startswith("_") and name not in seen and _doc(getattr(member, "__func__", member)):
                seen.add(name)
                yield name, member


def _signature(function: object) -> str:
    assert callable(function)
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in ("self", "cls")
    ]
    shown = str(inspect.Signature(parameters))
    return re.sub(r"<(?:function )?([\w.]+)(?: object)? at 0x[0-9a-f]+>", r"\1", shown)


def _default(field: "dataclasses.Field[object]") -> str:
    if field.default is not dataclasses.MISSING:
        value = field.default
        if isinstance(value, frozenset):
            return "`" + " ".join(map(str, sorted(value))) + "`"
        return f"`{value.name if isinstance(value, enum.Enum) else repr(value)}`"
    if field.default_factory is not dataclasses.MISSING:
        return f"`{getattr(field.default_factory, '__name__', 'made')}()`"
    return "required"


def _doc(value: object) -> str:
    """The docstring on one line; dataclasses without one of their own have none."""
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    return "" if re.match(r"\w+\(.*\)$", text) else " ".join(text.split())


if __name__ == "__main__":
    sys.stdout.write(page())
