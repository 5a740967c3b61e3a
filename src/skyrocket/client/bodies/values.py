"""Values of JSON made into what a type says: nested dataclasses, UUID, Decimal, dates, enums, unions, …

`converter_of(Order)` reads the type once and gives a function; what does not fit raises NotReadable, which names the
place: `order.items[2].price: 'x' is no Decimal`. Fields that the type does not have are passed over, so that producers
may be newer than consumers.
"""

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from uuid import UUID

Converter: TypeAlias = Callable[[Any], Any]


class NotReadable(ValueError):
    """A body that is not what its reader expects, or a type that no body can be."""

    _has_place = False

    def within(self, place: str) -> "NotReadable":
        """The same, seen from one level above."""
        inside = NotReadable(f"{place}{self}" if self._has_place else f"{place}: {self}")
        inside._has_place = True
        return inside


def converter_of(kind: Any) -> Converter:
    """Reads values of JSON as this type; raises NotReadable for a type that JSON cannot be."""
    return _Reading().of(kind)


class _Reading:
    """Types that were met: one may contain itself."""

    def __init__(self) -> None:
        self._known: dict[Any, list[Converter]] = {}

    def of(self, kind: Any) -> Converter:
        if kind is Any or kind is object:
            return _same
        if kind is None or kind is type(None):
            return _of_type(type(None), "null")
        if isinstance(kind, type) and kind in _SIMPLE:
            return _SIMPLE[kind]
        origin = get_origin(kind)
        if origin in (Annotated, Required, NotRequired):
            return self.of(get_args(kind)[0])
        if origin is Literal:
            return _literal(get_args(kind))
        if origin in (Union, types.UnionType):
            return _first_of([self.of(each) for each in get_args(kind)], kind)
        if origin is not None or kind in (list, dict, tuple, set, frozenset):
            return self._container(origin or kind, get_args(kind))
        return self._class(kind)

    def _container(self, origin: Any, inner: tuple[Any, ...]) -> Converter:
        if isinstance(origin, type) and issubclass(origin, Mapping):
            key, value = inner or (Any, Any)
            return _mapping(self.of(key), self.of(value))
        if origin is tuple and inner and inner[-1] is not Ellipsis:
            return _fixed([self.of(each) for each in inner])
        if isinstance(origin, type) and issubclass(origin, Sequence | set | frozenset):
            made = origin if origin in (tuple, set, frozenset) else list
            return _many(self.of(inner[0] if inner else Any), made)
        raise _unknown(origin)

    def _class(self, kind: Any) -> Converter:
        if isinstance(kind, type) and issubclass(kind, Enum):
            return _enum(kind)
        if hasattr(kind, "model_validate"):
            return by_library(kind.model_validate)
        if hasattr(kind, "__struct_fields__"):
            import msgspec

            return by_library(lambda value: msgspec.convert(value, kind))
        if not dataclasses.is_dataclass(kind) and not is_typeddict(kind):
            raise _unknown(kind)
        if kind in self._known:  # being read further up: it is there when a value comes
            later = self._known[kind]
            return lambda value: later[0](value)
        found = self._known[kind] = []
        hints = get_type_hints(kind, include_extras=True)
        if is_typeddict(kind):
            found.append(_fields(dict, {name: self.of(hints[name]) for name in hints}, kind.__required_keys__))
        else:
            given = [field for field in dataclasses.fields(kind) if field.init]
            needed = [f.name for f in given if f.default is f.default_factory is dataclasses.MISSING]
            found.append(_fields(kind, {field.name: self.of(hints[field.name]) for field in given}, needed))
        return found[0]


def _unknown(kind: Any) -> NotReadable:
    return NotReadable(f"{getattr(kind, '__name__', kind)} cannot be read from JSON: give a codec of your own")


def _wrong(value: Any, what: str) -> NotReadable:
    text = repr(value)
    return NotReadable(f"{text if len(text) < 60 else text[:57] + '...'} is no {what}")


def _same(value: Any) -> Any:
    return value


def _of_type(kind: type | tuple[type, ...], what: str) -> Converter:
    def convert(value: Any) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise _wrong(value, what)
        return value

    return convert


def _float(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(value, "number")
    return float(value)


def _from_text(kind: type, make: Callable[[str], Any], what: str) -> Converter:
    """From ISO and the like; other formats than JSON bring such values themselves."""

    def convert(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        if not isinstance(value, str):
            raise _wrong(value, what)
        try:
            return make(value)
        except ValueError:
            raise _wrong(value, what) from None

    return convert


def _decimal(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise _wrong(value, "Decimal")
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise _wrong(value, "Decimal") from None


_SIMPLE: Final[dict[type, Converter]] = {
    bool: _of_type(bool, "bool"),
    int: _of_type(int, "int"),
    float: _float,
    str: _of_type(str, "text"),
    bytes: _of_type(bytes, "bytes"),
    Decimal: _decimal,
    UUID: _from_text(UUID, UUID, "UUID"),
    datetime: _from_text(datetime, datetime.fromisoformat, "datetime (ISO 8601)"),
    date: _from_text(date, date.fromisoformat, "date (ISO 8601)"),
    time: _from_text(time, time.fromisoformat, "time (ISO 8601)"),
}


def _literal(allowed: tuple[Any, ...]) -> Converter:
    def convert(value: Any) -> Any:
        if value not in allowed:
            raise _wrong(value, " or ".join(map(repr, allowed)))
        return value

    return convert


def _first_of(converters: Sequence[Converter], kind: Any) -> Converter:
    def convert(value: Any) -> Any:
        reasons = []
        for each in converters:
            try:
                return each(value)
            except NotReadable as error:
                reasons.append(str(error))
        raise NotReadable("; ".join(dict.fromkeys(reasons)))

    return convert


def _mapping(key: Converter, value: Converter) -> Converter:
    def convert(given: Any) -> Any:
        if not isinstance(given, Mapping):
            raise _wrong(given, "object")
        return {key(name): _at(value, each, f"[{name!r}]") for name, each in given.items()}

    return convert


def _many(element: Converter, made: Callable[[Any], Any]) -> Converter:
    def convert(given: Any) -> Any:
        if not isinstance(given, list | tuple):
            raise _wrong(given, "list")
        return made([_at(element, each, f"[{number}]") for number, each in enumerate(given)])

    return convert


def _fixed(elements: Sequence[Converter]) -> Converter:
    def convert(given: Any) -> Any:
        if not isinstance(given, list | tuple) or len(given) != len(elements):
            raise _wrong(given, f"list of {len(elements)}")
        pairs = zip(elements, given, strict=True)
        return tuple(_at(each, value, f"[{number}]") for number, (each, value) in enumerate(pairs))

    return convert


def _enum(kind: type[Enum]) -> Converter:
    def convert(value: Any) -> Any:
        try:
            return kind(value)
        except ValueError:
            raise _wrong(value, kind.__name__) from None

    return convert


def by_library(validate: Converter) -> Converter:
    """A converter of pydantic's or msgspec's; what does not fit is NotReadable as everywhere."""

    def convert(value: Any) -> Any:
        try:
            return validate(value)
        except ValueError as error:  # theirs are all of this kind
            raise NotReadable(_in_one_line(error)) from error

    return convert


def _in_one_line(error: ValueError) -> str:
    """pydantic's own words take many lines, for which logs and lists of dead letters have no room."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return str(error)
    found = [(".".join(map(str, each["loc"])), each["msg"]) for each in errors()]
    return "; ".join(f"{place}: {text}" if place else text for place, text in found)


def _fields(make: Callable[..., Any], fields: Mapping[str, Converter], needed: Any) -> Converter:
    needed = frozenset(needed)

    def convert(given: Any) -> Any:
        if not isinstance(given, Mapping):
            raise _wrong(given, "object")
        missing = sorted(needed - given.keys())
        if missing:
            raise NotReadable(f"{', '.join(missing)} missing")
        return make(**{name: _at(each, given[name], f".{name}") for name, each in fields.items() if name in given})

    return convert


def _at(convert: Converter, value: Any, place: str) -> Any:
    try:
        return convert(value)
    except NotReadable as error:
        raise error.within(place) from None
