"""A Java object in JSON ↔ a dataclass: one table of fields reads and writes it.

    TOPIC = bean(TopicConfig, Field("topicName", "name", TEXT), Field("perm", "permission", INTEGER), …)

Reading is as lenient as Java: a missing or null field has the dataclass's default, numbers may be quoted, integer
keys too. Fields that are not in the table are kept in the dataclass's `unknown`, and written back. Writing sorts the
fields by name and leaves out those that are None.
"""

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from skyrocket.errors import DataError
from skyrocket.fastjson.values import Json, JsonKey
from skyrocket.fastjson.writer import Dialect

T = TypeVar("T")
K = TypeVar("K")

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")
_LARGEST = (1 << 63) - 1


class WrongShape(DataError):
    """JSON is well-formed but a value is not of the kind that belongs there; `path` leads to it."""

    def __init__(self, reason: str, path: tuple[str, ...] = ()) -> None:
        self.reason = reason
        self.path = path
        super().__init__(f"{'.'.join(path)}: {reason}" if path else reason)

    def inside(self, name: object) -> "WrongShape":
        """The same, seen from one level further out."""
        return WrongShape(self.reason, (str(name), *self.path))


@dataclass(frozen=True)
class Kind(Generic[T]):
    """How one kind of value is read and written."""

    read: Callable[[Json], T]
    write: Callable[[T, Dialect], Json] = lambda value, _dialect: cast("Json", value)


def _wrong(expected: str, value: object) -> WrongShape:
    shown = repr(value)
    return WrongShape(f"expected {expected}, found {shown if len(shown) <= 40 else shown[:40] + '…'}")


def _integer(value: object) -> int:
    if isinstance(value, str):
        value = int(value) if _WHOLE_NUMBER.fullmatch(value) else value
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong("a whole number", value)
    if not -_LARGEST - 1 <= value <= _LARGEST:
        raise _wrong("a number of 64 bits", value)
    return value


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise _wrong("text", value)


def _flag(value: Json) -> bool:
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.lower(), value)
    if value not in (True, False):
        raise _wrong("true or false", value)
    return bool(value)


INTEGER: Kind[int] = Kind(_integer)
TEXT: Kind[str] = Kind(_text)
FLAG: Kind[bool] = Kind(_flag)


def one_of(*names: str) -> Kind[str]:
    """A Java enum: its name in any letter case, or its number; what is unknown counts as the first."""

    def read(value: Json) -> str:
        if isinstance(value, int) and 0 <= value < len(names):
            return names[value]
        return next((name for name in names if name == str(value).upper()), names[0])

    return Kind(read)


def list_of(kind: Kind[T]) -> Kind[list[T]]:
    """A list whose elements are all of one kind."""

    def read(value: Json) -> list[T]:
        if not isinstance(value, list):
            raise _wrong("a list", value)
        elements: list[T] = []
        for index, element in enumerate(value):
            try:
                elements.append(kind.read(element))
            except WrongShape as error:
                raise error.inside(f"[{index}]") from None
        return elements

    return Kind(read, lambda elements, dialect: [kind.write(element, dialect) for element in elements])


def tuple_of(kind: Kind[T]) -> Kind[tuple[T, ...]]:
    """The same as a tuple."""
    elements = list_of(kind)
    return Kind(
        lambda value: tuple(elements.read(value)), lambda values, dialect: elements.write(list(values), dialect)
    )


@dataclass(frozen=True)
class KeyKind(Generic[K]):
    """How the keys of a map are read and written."""

    read: Callable[[JsonKey], K]
    write: Callable[[K], JsonKey]


INTEGER_KEY: KeyKind[int] = KeyKind(_integer, lambda key: key)
TEXT_KEY: KeyKind[str] = KeyKind(_text, lambda key: key)


def map_of(key_kind: KeyKind[K], kind: Kind[T]) -> Kind[dict[K, T]]:
    """A map in the order of the text; pairs whose value is null are left out."""

    def read(value: Json) -> dict[K, T]:
        if not isinstance(value, dict):
            raise _wrong("an object", value)
        pairs: dict[K, T] = {}
        for key, element in value.items():
            if element is None:
                continue
            try:
                pairs[key_kind.read(key)] = kind.read(element)
            except WrongShape as error:
                raise error.inside(key) from None
        return pairs

    def write(pairs: dict[K, T], dialect: Dialect) -> Json:
        return {key_kind.write(key): kind.write(element, dialect) for key, element in pairs.items()}

    return Kind(read, write)


@dataclass(frozen=True)
class Field:
    """One line of a bean's table."""

    name: str
    attribute: str
    kind: Kind[Any]
    since_5: bool = False  # RocketMQ 4.9 does not know it; its files get it only when it says something
    derived: bool = False  # a Java getter without a field: written, never read


def bean(make: type[T], *fields: Field) -> Kind[T]:
    """A Java object with these fields; `make` is a dataclass with an attribute for each, and `unknown`."""
    names = frozenset(field.name for field in fields)
    defaults = {field.name: _default(field) for field in dataclasses.fields(make)}  # type: ignore[arg-type]
    required = [field for field in fields if defaults.get(field.attribute) is dataclasses.MISSING]

    def read(value: Json) -> T:
        if not isinstance(value, dict):
            raise _wrong("an object", value)
        given: dict[str, Any] = {}
        for field in fields:
            element = value.get(field.name)
            if element is None or field.derived:
                continue
            try:
                given[field.attribute] = field.kind.read(element)
            except WrongShape as error:
                raise error.inside(field.name) from None
        for field in required:
            if field.attribute not in given:
                raise WrongShape(f"{field.name} is missing")
        unknown = {name: element for name, element in value.items() if name not in names}
        return make(**given, unknown=unknown)  # type: ignore[call-arg]

    def write(thing: T, dialect: Dialect) -> Json:
        pairs: dict[JsonKey, Json] = dict(thing.unknown)  # type: ignore[attr-defined]
        for field in fields:
            element = getattr(thing, field.attribute)
            says_nothing = field.since_5 and dialect is Dialect.V4_9 and element == defaults[field.attribute]
            if element is not None and not says_nothing:
                pairs[field.name] = field.kind.write(element, dialect)
        return dict(sorted(pairs.items(), key=lambda pair: str(pair[0])))

    return Kind(read, write)


def _default(field: "dataclasses.Field[Any]") -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
