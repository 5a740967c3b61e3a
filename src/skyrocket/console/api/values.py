"""Dataclasses from JSON and from query strings, with errors that name the field; and their JSON schema."""

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from skyrocket.client.core.errors import WrongUse
from skyrocket.model.words import said

T = TypeVar("T")

_LARGEST = (1 << 62) - 1  # brokers and the file have 64 bits, and something is added at times
_NAMES = {str: said("text"), int: said("a whole number"), float: said("a number"), bool: said("true or false")}


class BadInput(WrongUse):
    """What a browser or a script sent is not what the endpoint takes."""


def read(kind: type[T], given: Any, *, from_text: bool = False) -> T:
    """An instance of a dataclass; `from_text`: values are those of a query string. Raises BadInput."""
    if not isinstance(given, Mapping):
        raise BadInput("the body must be a JSON object: see /docs")
    hints = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = given.keys() - fields.keys()
    if unknown:
        raise BadInput(
            "{names} is not known here; there are {known}",
            names=", ".join(sorted(unknown)),
            known=", ".join(fields) or said("none"),
        )
    values = {}
    for name, field in fields.items():
        if name in given:
            values[name] = _value(hints[name], given[name], name, from_text)
        elif is_required(field):
            raise BadInput("{name} is missing", name=name)
    return kind(**values)


def _value(hint: Any, given: Any, name: str, from_text: bool) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if given is None or (from_text and given == ""):
            return None
        return _value(next(each for each in arguments if each is not type(None)), given, name, from_text)
    if origin is Literal:
        if given not in arguments:
            raise BadInput(
                "{name} is {given!r}: choose one of {names}",
                name=name,
                given=given,
                names=", ".join(map(str, arguments)),
            )
        return given
    if origin in (list, tuple):
        if not isinstance(given, list):
            raise BadInput("{name} must be a list", name=name)
        items = [_value(arguments[0], each, f"{name}[{number}]", from_text) for number, each in enumerate(given)]
        return tuple(items) if origin is tuple else items
    if origin is dict:
        if not isinstance(given, dict):
            raise BadInput("{name} must be an object", name=name)
        return {key: _value(arguments[1], each, f"{name}.{key}", from_text) for key, each in given.items()}
    if dataclasses.is_dataclass(hint):
        return read(hint, given)  # type: ignore[arg-type]
    return _simple(hint, given, name, from_text)


def _simple(hint: Any, given: Any, name: str, from_text: bool) -> Any:
    if hint is bool and from_text and given in ("true", "false", "1", "0"):
        return given in ("true", "1")
    if hint in (int, float) and from_text:
        try:
            given = hint(given)
        except ValueError:
            raise BadInput("{name} is {given!r}, not {kind}", name=name, given=given, kind=_NAMES[hint]) from None
    if hint is float and isinstance(given, int) and not isinstance(given, bool):
        given = float(given)
    if not isinstance(given, hint) or (hint is int and isinstance(given, bool)):
        raise BadInput("{name} must be {kind}", name=name, kind=_NAMES.get(hint, hint.__name__))
    if hint in (int, float) and not -_LARGEST <= given <= _LARGEST:  # nan, too
        raise BadInput("{name} is no number that there is room for: at most {limit:,}", name=name, limit=_LARGEST)
    return given


def is_required(field: "dataclasses.Field[Any]") -> bool:
    """Whether it has no default; an answer may have more that is always there."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def schema(hint: Any, known: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of a type; dataclasses are put into `known` and named."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        inner = [schema(each, known) for each in arguments if each is not type(None)]
        return {"anyOf": [*inner, {"type": "null"}]} if len(inner) < len(arguments) else {"anyOf": inner}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (list, tuple):
        return {"type": "array", "items": schema(arguments[0], known)}
    if origin in (dict, Mapping, types.MappingProxyType) or (origin is not None and issubclass(origin, Mapping)):
        return {"type": "object", "additionalProperties": schema(arguments[1], known)}
    if dataclasses.is_dataclass(hint):
        name = hint.__name__  # type: ignore[union-attr]
        if name not in known:
            known[name] = {}  # it may name itself
            hints = get_type_hints(hint)
            known[name] = {
                "type": "object",
                "description": (hint.__doc__ or "").strip(),
                "properties": {field.name: schema(hints[field.name], known) for field in dataclasses.fields(hint)},
                "required": [field.name for field in dataclasses.fields(hint) if is_required(field)],
            }
        return {"$ref": f"#/components/schemas/{name}"}
    kinds = {str: "string", int: "integer", float: "number", bool: "boolean"}
    return {"type": kinds[hint]} if hint in kinds else {}
