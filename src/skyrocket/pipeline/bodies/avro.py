"""An Avro schema as types of columns, and bodies as values of it.

Without a registry a body is one datum of the schema. With one it begins with a zero byte and the number of the schema
that it was written with; what was written with an older or newer one is read as ours says, by Avro's rules.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from skyrocket.columns.schema import TIMESTAMP
from skyrocket.errors import ConfigError
from skyrocket.schemas.avro import bounds_of, datum, parsed
from skyrocket.schemas.numbered import split_number
from skyrocket.schemas.registry import schema_text

_PRIMITIVE: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final = {
    "timestamp-millis": TIMESTAMP,
    "timestamp-micros": TIMESTAMP,
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "date": pa.date32(),
    "uuid": pa.string(),
    "time-millis": pa.string(),
    "time-micros": pa.string(),
}


@dataclass(frozen=True, slots=True)
class AvroReader:
    """Reads bodies; plain values, as it travels to the executors."""

    schema: str  # JSON
    registry: str = ""

    @property
    def arrow_type(self) -> pa.DataType:
        """The struct of the record; raises ConfigError."""
        described = json.loads(self.schema)
        if not isinstance(described, Mapping) or described.get("type") != "record":
            raise ConfigError("the Avro schema is no record, so it has no columns: wrap its value into one")
        return _type_of(described, {}, described.get("namespace", ""))

    def read(self, body: bytes) -> Any:
        """The fields of one body; raises BodyUnreadable."""
        ours = parsed(self.schema)
        text, data = self.schema, body
        if self.registry:
            number, data = split_number(body)
            text = schema_text(self.registry, number)
        writer = parsed(text)
        bounds_of(text).check(data)
        return _plain(datum(data, writer, ours if writer is not ours else None))


def _type_of(schema: Any, known: dict[str, Any], namespace: str) -> pa.DataType:
    if isinstance(schema, str):
        if schema in _PRIMITIVE:
            return _PRIMITIVE[schema]
        full = schema if "." in schema or not namespace else f"{namespace}.{schema}"
        if known.get(full) is not None:
            return known[full]
        raise ConfigError(f"the Avro type {schema} is not known here, or contains itself, and columns have an end")
    if isinstance(schema, list):
        kinds = [each for each in schema if each != "null"]
        if len(kinds) != 1:
            raise ConfigError(f"an Avro union of {len(kinds)} types has no type of column: {json.dumps(schema)}")
        return _type_of(kinds[0], known, namespace)
    return _complex(schema, known, namespace)


def _complex(schema: Mapping[str, Any], known: dict[str, Any], namespace: str) -> pa.DataType:
    kind, logical = schema["type"], schema.get("logicalType")
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if logical == "decimal":
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    if kind == "array":
        return pa.list_(_type_of(schema["items"], known, namespace))
    if kind == "map":
        return pa.map_(pa.string(), _type_of(schema["values"], known, namespace))
    if kind not in ("record", "enum", "fixed"):
        return _type_of(kind, known, namespace)
    space = schema.get("namespace", namespace)
    full = schema["name"] if "." in schema["name"] or not space else f"{space}.{schema['name']}"
    made = {"enum": pa.string(), "fixed": pa.binary()}.get(kind)
    if made is None:
        known[full] = None  # of itself it cannot consist
        made = pa.struct([(each["name"], _type_of(each["type"], known, space)) for each in schema["fields"]])
    known[full] = made
    return made


def _plain(value: Any) -> Any:
    """Without what Arrow has no value for."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, UUID):
        return str(value)
    return value.isoformat() if isinstance(value, time) else value
