"""A Java object in JSON ↔ a dataclass, whose annotations say how each field is read and written.

    @dataclass
    class QueueData:
        broker_name: str                                   in JSON `brokerName`
        permission: Annotated[int, "perm"] = 6             another name than its own in camelCase
        mode: Annotated[str, one_of("PULL", "POP")]        another kind than that of its type
        sys_flag: Annotated[int, SINCE_5] = 0              4.9 does not know it
        unknown: Mapping[str, Any]                         every bean has it

    QUEUE_DATA = bean(QueueData)

Reading is as lenient as Java: a missing or null field has the dataclass's default, numbers may be quoted, integer
keys too. Members that no field is for are kept in the dataclass's `unknown`, and written back. Writing sorts the
fields by name and leaves out those that are None.
"""

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Final, Generic, NamedTuple, TypeVar, cast

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
        """This error, seen from one level further out."""
        return WrongShape(self.reason, (str(name), *self.path))


class Kind(NamedTuple, Generic[T]):
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


def _number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _wrong("a number", value)
    try:
        return float(value)
    except ValueError:
        raise _wrong("a number", value) from None


INTEGER: Kind[int] = Kind(_integer)
TEXT: Kind[str] = Kind(_text)
FLAG: Kind[bool] = Kind(_flag)
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


def one_of(*names: str) -> Kind[str]:
    """`enum_of`, but what is unknown counts as the first."""
    known = enum_of(*names)
    return Kind(lambda value: known.read(value) or names[0])


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
    """A list that is kept as a tuple."""
    elements = list_of(kind)
    return Kind(
        lambda value: tuple(elements.read(value)), lambda values, dialect: elements.write(list(values), dialect)
    )


class KeyKind(NamedTuple, Generic[K]):
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


# In an annotation: RocketMQ 4.9 does not know the field; its files get it only when it says something.
SINCE_5: Final = object()


class Field(NamedTuple):
    """One member of a Java object."""

    name: str
    attribute: str
    kind: Kind[Any]
    since_5: bool = False
    derived: bool = False  # a Java getter without a field: written, never read


class _Table(NamedTuple):
    fields: tuple[Field, ...]
    names: frozenset[str]
    defaults: Mapping[str, Any]
    required: tuple[Field, ...]


def bean(make: type[T], *derived: Field) -> Kind[T]:
    """A Java object; `make` is a dataclass with annotations as above. They are looked at when it is first used."""

    @cache
    def table() -> _Table:
        return _table_of(make, derived)

    def read(value: Json) -> T:
        if not isinstance(value, dict):
            raise _wrong("an object", value)
        given: dict[str, Any] = {}
        for field in table().fields:
            element = value.get(field.name)
            if element is None or field.derived:
                continue
            try:
                given[field.attribute] = field.kind.read(element)
            except WrongShape as error:
                raise error.inside(field.name) from None
        for field in table().required:
            if field.attribute not in given:
                raise WrongShape(f"{field.name} is missing")
        names = table().names
        unknown = {name: element for name, element in value.items() if name not in names}
        return make(**given, unknown=unknown)  # type: ignore[call-arg]

    def write(thing: T, dialect: Dialect) -> Json:
        pairs: dict[JsonKey, Json] = dict(thing.unknown)  # type: ignore[attr-defined]
        for field in table().fields:
            element = getattr(thing, field.attribute)
            says_nothing = field.since_5 and dialect is Dialect.V4_9 and element == table().defaults[field.attribute]
            if element is not None and not says_nothing:
                pairs[field.name] = field.kind.write(element, dialect)
        return dict(sorted(pairs.items(), key=lambda pair: str(pair[0])))

    return Kind(read, write)


# ── from annotations to kinds ────────────────────────────────────────────────────────────────────────────────────────


def _table_of(make: type, derived: tuple[Field, ...]) -> _Table:
    hints = typing.get_type_hints(make, include_extras=True)
    declared = [field for field in dataclasses.fields(make) if field.name != "unknown"]
    fields = (*(_field_of(field.name, hints[field.name]) for field in declared), *derived)
    defaults = {field.name: _default(field) for field in declared}
    return _Table(
        fields,
        frozenset(field.name for field in fields),
        defaults,
        tuple(field for field in fields if defaults.get(field.attribute) is dataclasses.MISSING),
    )


def _field_of(attribute: str, hint: Any) -> Field:
    said = getattr(hint, "__metadata__", ())
    name = next((each for each in said if isinstance(each, str)), None) or camel_case(attribute)
    return Field(name, attribute, _kind_of(hint), since_5=SINCE_5 in said)


def camel_case(name: str) -> str:
    """A Python name as Java has it."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_KINDS: Final[dict[Any, Kind[Any]]] = {int: INTEGER, str: TEXT, bool: FLAG, float: NUMBER, Any: ANYTHING}
_BEANS: Final[dict[type, Kind[Any]]] = {}
_KEY_KINDS: Final[dict[Any, KeyKind[Any]]] = {int: INTEGER_KEY, str: TEXT_KEY}


def _kind_of(hint: Any) -> Kind[Any]:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return next((said for said in parts if isinstance(said, Kind)), None) or _kind_of(parts[0])
    if origin in (typing.Union, types.UnionType):  # something or None
        return _kind_of(parts[0])
    if origin is tuple:
        return tuple_of(_kind_of(parts[0]))
    if origin is list:
        return list_of(_kind_of(parts[0]))
    if origin in (dict, Mapping):
        return map_of(_key_kind_of(parts[0]), _kind_of(parts[1]))
    return _KINDS.get(hint) or bean_of(hint)


def _key_kind_of(hint: Any) -> KeyKind[Any]:
    said = getattr(hint, "__metadata__", ())
    return next((each for each in said if isinstance(each, KeyKind)), None) or _KEY_KINDS[hint]


def bean_of(make: type[T]) -> Kind[T]:
    """`bean`, made once for all who ask."""
    kind = _BEANS.get(make)
    if kind is None:
        kind = _BEANS[make] = bean(make)
    return kind


def _default(field: "dataclasses.Field[Any]") -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
