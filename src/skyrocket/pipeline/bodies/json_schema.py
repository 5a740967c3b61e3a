"""A JSON Schema as types of Spark's columns. What columns cannot say (one of several types) stays JSON text."""

import json
from collections.abc import Mapping
from typing import Any, Final

from skyrocket.errors import ConfigError

_TYPES: Final = {"integer": "bigint", "number": "double", "boolean": "boolean"}
_FORMATS: Final = {"date-time": "timestamp", "date": "date"}
_TEXT: Final = "string"


def columns_of(text: str) -> str:
    """The fields of an object, as DDL; raises ConfigError."""
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"the JSON Schema is not JSON: {error}") from error
    if not isinstance(schema, Mapping):
        raise ConfigError("the JSON Schema is no object")
    told = _resolved(schema, schema, ())[0]
    if not told.get("properties"):
        raise ConfigError("the JSON Schema describes no object with properties, so it has no columns")
    return ", ".join(f"{_quoted(name)} {_type(each, schema, ())}" for name, each in told["properties"].items())


def _type(told: Any, root: Mapping[str, Any], around: tuple[str, ...]) -> str:
    if not isinstance(told, Mapping):
        return _TEXT  # `true`: anything
    told, around = _resolved(told, root, around)
    for key in ("oneOf", "anyOf"):
        choices = [each for each in told.get(key, ()) if each != {"type": "null"}]
        if choices:
            return _type(choices[0], root, around) if len(choices) == 1 else _TEXT
    kinds = told.get("type")
    kinds = [each for each in kinds if each != "null"] if isinstance(kinds, list) else [kinds]
    kind = kinds[0] if len(kinds) == 1 else None
    if kind == "string":
        return _FORMATS.get(told.get("format", ""), _TEXT)
    if kind == "array":
        return f"array<{_type(told.get('items', True), root, around)}>"
    if kind in ("object", None) and told.get("properties"):
        fields = (f"{_quoted(name)}: {_type(each, root, around)}" for name, each in told["properties"].items())
        return f"struct<{', '.join(fields)}>"
    if kind == "object" and isinstance(told.get("additionalProperties"), Mapping):
        return f"map<string, {_type(told['additionalProperties'], root, around)}>"
    return _TYPES.get(kind or "", _TEXT)


def _resolved(
    told: Mapping[str, Any], root: Mapping[str, Any], around: tuple[str, ...]
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """What a `$ref` into the same schema means."""
    while "$ref" in told:
        place = str(told["$ref"])
        if place in around:
            raise ConfigError(f"the JSON Schema contains itself ({place}), and columns have an end")
        around = (*around, place)
        found: Any = root
        for part in filter(None, place.removeprefix("#").split("/") if place.startswith("#") else [place]):
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            raise ConfigError(f"the JSON Schema refers to {place}, which is not in it: join the schemas into one")
        told = found
    return told, around


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
