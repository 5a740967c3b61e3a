"""What makes a request or an answer a type: its fields ↔ the text fields of a command's header.

    @request(RequestCode.GET_MAX_OFFSET, answer=OffsetAnswer)
    class GetMaxOffset(Request[OffsetAnswer]):
        topic: str                               required; on the wire `topic`
        queue_id: Int                            required; on the wire `queueId`
        committed: bool = True                   has a default
        broker_name: str | None = wire("bname", default=None)

Such a class is a dataclass with slots, frozen to type checkers: freezing it at run time would cost more than parsing.
`from_fields` and `to_fields` are compiled once per class from its table of fields, because a broker calls them for
every message. They follow Java: numbers are decimal text, everything but `true` is false, None is not written. A
required field that is missing is refused with code 1, as Java does when it falls over the null. A malformed number
counts as missing; in the headers that Java decodes without reflection (`strict_numbers`) it is refused.
"""

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Generic, NamedTuple, Self, TypeAlias, TypeVar, dataclass_transform

from skyrocket.fastjson.bean import camel_case
from skyrocket.protocol.bodies.json_body import BodyKind
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.errors import MissingField
from skyrocket.protocol.java_order import FROM_HEADER, bucket_order, fill_limit, java_map_order
from skyrocket.protocol.late_init import late_init_dataclass

Int: TypeAlias = Annotated[int, 32]  # Java's int
Long: TypeAlias = Annotated[int, 64]  # Java's long


class BoundaryType(StrEnum):
    """Which of several messages with the wanted time an offset search means."""

    LOWER = "LOWER"
    UPPER = "UPPER"


class Header:
    """The fields of a request or an answer."""

    __slots__ = ()
    wire_fields: ClassVar[tuple["WireField", ...]] = ()
    ext_capacity: ClassVar[int] = FROM_HEADER
    is_sent: ClassVar[bool] = True  # whether RocketMQ writes extFields for it at all, be it `{}`

    @classmethod
    def from_fields(cls, fields: Mapping[str, str] | None) -> Self:
        """The header of a received command; raises MissingField."""
        raise NotImplementedError  # compiled by the decorator

    def to_fields(self) -> dict[str, str]:
        """The ext fields to send, in the order of Java's map."""
        raise NotImplementedError  # compiled by the decorator

    def ext_fields(self) -> dict[str, str] | None:
        """The ext fields of a command: None where RocketMQ leaves them out."""
        return self.to_fields() if self.is_sent else None

    def check_fields(self) -> None:
        """Called for what was received; a header that has rules raises RequestError."""

    # Once for all: a dataclass would compile its own for each of some hundred and fifty classes, at every start.

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, field.attribute) == getattr(other, field.attribute) for field in self.wire_fields)

    def __hash__(self) -> int:
        return hash((self.__class__, *(getattr(self, field.attribute) for field in self.wire_fields)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{field.attribute}={getattr(self, field.attribute)!r}" for field in self.wire_fields)
        return f"{self.__class__.__qualname__}({shown})"


A = TypeVar("A", bound=Header, covariant=True)
C = TypeVar("C", bound=type[Header])


class Request(Header, Generic[A]):
    """A question; `A` is the header of its answer."""

    __slots__ = ()
    code: ClassVar[RequestCode]
    answer: ClassVar[type[Header]]
    body: ClassVar[BodyKind | None] = None  # None: no body, or one that is not JSON
    optional_body: ClassVar[bool] = False  # whether a request without a body is served, with None for it
    answer_body: ClassVar[BodyKind | None] = None


REQUESTS: Final[dict[int, type[Request[Any]]]] = {}  # every request by its code; filled by the decorator


class WireField(NamedTuple):
    """One line of the table: name on the wire, attribute, kind and default."""

    name: str
    attribute: str
    kind: str
    required: bool
    nullable: bool
    default: Any


def wire(name: str, *, default: Any = dataclasses.MISSING) -> Any:
    """A field whose name on the wire is not its Python name in camelCase."""
    return dataclasses.field(default=default, metadata={"wire": name})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(wire, dataclasses.field))
def request(
    code: RequestCode,
    *,
    answer: type[Header] | None = None,
    body: BodyKind | None = None,
    optional_body: bool = False,
    answer_body: BodyKind | None = None,
    names: Mapping[str, str] | None = None,
    strict_numbers: bool = False,
    empty_header: bool = False,
) -> Callable[[C], C]:
    """Make a class a request.

    Without `answer` extFields are left out of the answer. `names` replaces the wire names of inherited fields.
    `empty_header`: the request has no fields, but `{}` is sent.
    """

    def decorate(cls: C) -> C:
        made = _compiled(cls, FROM_HEADER, names or {}, strict_numbers)
        made.code = code  # type: ignore[attr-defined]
        made.answer = answer or NoAnswerFields  # type: ignore[attr-defined]
        made.body = body  # type: ignore[attr-defined]
        made.optional_body = optional_body  # type: ignore[attr-defined]
        made.answer_body = answer_body  # type: ignore[attr-defined]
        made.is_sent = bool(dataclasses.fields(made)) or empty_header  # type: ignore[arg-type]
        assert code not in REQUESTS, f"two classes for {code!r}"
        REQUESTS[code] = made  # type: ignore[assignment]
        return made

    return decorate


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(wire, dataclasses.field))
def answer(cls: C) -> C:
    """Make a class the header of an answer."""
    return _compiled(cls, FROM_HEADER, {}, False)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(wire, dataclasses.field))
def answer_with(*, ext_capacity: int) -> Callable[[C], C]:
    """Make a class the header of an answer whose map Java makes with another capacity."""
    return lambda cls: _compiled(cls, ext_capacity, {}, False)


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────

_KINDS: Final[dict[object, str]] = {str: "text", Int: "int", Long: "long", bool: "flag", BoundaryType: "boundary"}


def _table(cls: type, names: Mapping[str, str]) -> tuple[WireField, ...]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return tuple(_line(field, hints[field.name], names) for field in dataclasses.fields(cls))


class _LateTable:
    """Stands for `wire_fields` until somebody looks at it: reading the annotations takes its time."""

    def __init__(self, made: Any, names: Mapping[str, str]) -> None:
        self._made = made
        self._names = names

    def __get__(self, _: object, __: type) -> tuple[WireField, ...]:
        table = _table(self._made, self._names)
        self._made.wire_fields = table
        return table


def _line(field: "dataclasses.Field[Any]", hint: Any, names: Mapping[str, str]) -> WireField:
    nullable = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    kind = _KINDS[next(part for part in typing.get_args(hint) if part is not type(None)) if nullable else hint]
    name = names.get(field.name) or field.metadata.get("wire") or camel_case(field.name)
    required = field.default is dataclasses.MISSING
    return WireField(name, field.name, kind, required, nullable, None if required else field.default)


# ── parsing one field ────────────────────────────────────────────────────────────────────────────────────────────────

_DECIMAL = re.compile(r"[+-]?[0-9]{1,25}")


def parse_int(text: str) -> int:
    """Integer.parseInt; raises ValueError."""
    return _bounded(text, 1 << 31)


def parse_long(text: str) -> int:
    """Long.parseLong; raises ValueError."""
    return _bounded(text, 1 << 63)


def _bounded(text: str, limit: int) -> int:
    if _DECIMAL.fullmatch(text) is None or not -limit <= (number := int(text)) < limit:
        raise ValueError(f'For input string: "{text}"')
    return number


def parse_flag(text: str) -> bool:
    """Boolean.parseBoolean."""
    return text.lower() == "true"


def parse_boundary(text: str) -> BoundaryType:
    """UPPER in any letter case; LOWER is all else."""
    return BoundaryType.UPPER if text.upper() == "UPPER" else BoundaryType.LOWER


_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    "text": str,
    "int": parse_int,
    "long": parse_long,
    "flag": parse_flag,
    "boundary": parse_boundary,
}
_SMALL: Final = {str(number): number for number in range(1024)}  # most ints are queue ids, flags and counts
_FLAGS: Final = {"true": True, "false": False}
_IN_LINE: Final[dict[str, str]] = {  # the usual case without a call
    "text": "v",
    "int": "n if (n := small(v)) is not None else parse_int(v)",
    "long": "int(v) if len(v) < 19 and v.isdecimal() else parse_long(v)",
    "flag": "n if (n := flag(v)) is not None else parse_flag(v)",
    "boundary": "parse_boundary(v)",
}
_TEXT_OF: Final[dict[str, str]] = {
    "text": "v",
    "int": "str(v)",
    "long": "str(v)",
    "flag": "'true' if v else 'false'",
    "boundary": "v.value",
}


# ── compiling a class ────────────────────────────────────────────────────────────────────────────────────────────────


def _compiled(cls: C, ext_capacity: int, names: Mapping[str, str], strict_numbers: bool) -> C:
    made: Any = late_init_dataclass(kw_only=True)(cls)
    made.wire_fields = _LateTable(made, names)
    made.ext_capacity = ext_capacity

    # Compiled when first used: a program uses a few of them.
    def from_fields(fields: Mapping[str, str] | None) -> Any:
        made.from_fields = staticmethod(_reader(made, made.wire_fields, strict_numbers))
        return made.from_fields(fields)

    def to_fields(self: Any) -> dict[str, str]:
        made.to_fields = _writer(made.wire_fields, ext_capacity)
        fields: dict[str, str] = made.to_fields(self)
        return fields

    made.from_fields = staticmethod(from_fields)
    made.to_fields = to_fields
    result: C = made
    return result


def _reader(made: Any, table: tuple[WireField, ...], strict_numbers: bool) -> Callable[..., Any]:
    defaults = {f"d{number}": field.default for number, field in enumerate(table)}
    lines = ["def from_fields(fields):", " if fields is None: fields = NOTHING", " self = new(made)"]
    if table:
        lines += [" get = fields.get", " try:"]
    for number, field in enumerate(table):
        parsed = _IN_LINE[field.kind]
        if field.required:
            lines += [f"  v = fields[{field.name!r}]", f"  self.{field.attribute} = {parsed}"]
        elif field.kind == "text":
            lines += [f"  self.{field.attribute} = get({field.name!r}, d{number})"]
        else:
            lines += [
                f"  v = get({field.name!r})",
                f"  self.{field.attribute} = d{number} if v is None else ({parsed})",
            ]
    if table:
        lines += [" except (KeyError, ValueError): return careful(fields)"]
    if made.check_fields is not Header.check_fields:
        lines += [" self.check_fields()"]
    lines += [" return self"]
    scope: dict[str, Any] = {
        **defaults,
        "NOTHING": {},
        "new": object.__new__,
        "made": made,
        "careful": lambda fields: _carefully(made, table, strict_numbers, fields),
        "small": _SMALL.get,
        "flag": _FLAGS.get,
        "parse_flag": parse_flag,
        "parse_int": parse_int,
        "parse_long": parse_long,
        "parse_boundary": parse_boundary,
    }
    exec("\n".join(lines), scope)  # as dataclasses do it; the text is made of our own field names
    compiled: Callable[..., Any] = scope["from_fields"]
    return compiled


def _carefully(made: Any, table: tuple[WireField, ...], strict_numbers: bool, fields: Mapping[str, str]) -> Any:
    """Field by field, for a header that has something missing or malformed."""
    values: dict[str, Any] = {}
    for field in table:
        text = fields.get(field.name)
        try:
            value = field.default if text is None else _PARSERS[field.kind](text)
        except ValueError as error:
            if strict_numbers:
                raise MissingField(f"java.lang.NumberFormatException: {error}") from None
            value, text = field.default, None
        if text is None and field.required:
            raise MissingField(f"the custom field <{field.name}> of {made.__name__} is null")
        values[field.attribute] = value
    header = made(**values)
    header.check_fields()
    return header


def _writer(table: tuple[WireField, ...], ext_capacity: int) -> Callable[[Any], dict[str, str]]:
    by_name = {field.name: field for field in table}
    usual_order = bucket_order(by_name, ext_capacity)
    lines = ["def to_fields(self):", " fields = {}"]
    for name in usual_order:
        field = by_name[name]
        put = f"fields[{name!r}] = {_TEXT_OF[field.kind]}"
        lines += [f" v = self.{field.attribute}", f" if v is not None: {put}" if field.nullable else f" {put}"]
    if usual_order != java_map_order(by_name, ext_capacity):
        lines += [f" if len(fields) > {fill_limit(ext_capacity)}: return reordered(fields)"]
    lines += [" return fields"]

    @lru_cache(maxsize=64)  # a client writes the same few again and again
    def order_of(present: tuple[str, ...]) -> list[str]:
        return java_map_order([name for name in by_name if name in present], ext_capacity)

    def reordered(fields: dict[str, str]) -> dict[str, str]:
        return {name: fields[name] for name in order_of(tuple(fields))}

    scope: dict[str, Any] = {"reordered": reordered}
    exec("\n".join(lines), scope)
    compiled: Callable[[Any], dict[str, str]] = scope["to_fields"]
    return compiled


@answer
class NoAnswerFields(Header):
    """An answer that says all by its code and body: extFields are left out."""

    is_sent: ClassVar[bool] = False


@answer
class EmptyAnswer(Header):
    """An answer with `{}` for extFields, because its handler in RocketMQ has a header class without fields."""
