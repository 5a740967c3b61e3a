"""Avro: schemas as fastavro takes them, and bodies as values of them."""

import io
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from skyrocket.errors import ConfigError
from skyrocket.schemas.avro_bounds import Bounds
from skyrocket.schemas.numbered import BodyUnreadable


@lru_cache(maxsize=1000)
def parsed(schema: str) -> Any:
    """As fastavro takes it; raises ConfigError."""
    return parsed_with_names(schema, ())[0]


@lru_cache(maxsize=1000)
def bounds_of(schema: str) -> Bounds:
    """What bodies of it are held to; raises ConfigError."""
    return Bounds(*parsed_with_names(schema, ()))


def parsed_with_names(schema: str, imported: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """The schema, and all types by their full names; `imported` are schemas whose names it uses. Raises ConfigError."""
    try:
        import fastavro
    except ImportError as error:
        raise ConfigError("Avro bodies need fastavro: pip install 'skyrocket[avro]'") from error
    named: dict[str, Any] = {}
    try:
        for each in imported:
            fastavro.parse_schema(json.loads(each), named_schemas=named)
        return fastavro.parse_schema(json.loads(schema), named_schemas=named), named
    except Exception as error:  # a schema of anybody: the library raises what it meets
        raise ConfigError(f"the Avro schema cannot be read: {error}") from error


def datum(body: bytes, writer: Any, ours: Any = None) -> Any:
    """What a body says, as `ours` reads it; raises BodyUnreadable."""
    import fastavro

    source = io.BytesIO(body)
    try:
        found = fastavro.schemaless_reader(source, writer, ours)
    except Exception as error:  # bytes of anybody: the library raises what it meets
        raise BodyUnreadable(f"the body is no datum of the Avro schema: {error!r}") from error
    if source.read(1):
        raise BodyUnreadable("bytes are left behind the datum: the body has another Avro schema")
    return found
