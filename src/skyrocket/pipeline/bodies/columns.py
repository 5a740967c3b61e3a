"""Bodies as a column of Spark: read by Arrow batches in its Python workers."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from skyrocket.errors import ConfigError
from skyrocket.pipeline.bodies.avro import AvroReader
from skyrocket.pipeline.bodies.json_schema import columns_of
from skyrocket.pipeline.bodies.protobuf import ProtobufReader
from skyrocket.schemas.avro import parsed
from skyrocket.schemas.descriptors import descriptors_of_file, latest_descriptors, read_file
from skyrocket.schemas.numbered import BodyUnreadable
from skyrocket.schemas.protobuf import message_class, path_of
from skyrocket.schemas.registry import latest_schema

if TYPE_CHECKING:
    from pyspark.sql import Column


class BodyReader(Protocol):
    """A schema at work."""

    @property
    def arrow_type(self) -> pa.DataType:
        """Of the column."""
        ...

    def read(self, body: bytes) -> Any:
        """The value of one body; raises BodyUnreadable."""
        ...


@dataclass(frozen=True)
class Described:
    """What a user says about bodies."""

    format: str
    schema: str = ""
    schema_file: str = ""
    registry: str = ""
    subject: str = ""
    message: str = ""


def reader_of(told: Described) -> BodyReader:
    """Looks at files and asks the registry, once; raises ConfigError or RegistryError."""
    if told.format == "protobuf":
        reader: BodyReader = _protobuf(told)
    else:
        reader = _avro(told)
    reader.arrow_type  # noqa: B018 - raises for what has no columns
    return reader


def _protobuf(told: Described) -> ProtobufReader:
    if told.schema_file:
        if not told.message:
            raise ConfigError("Protobuf needs the name of the message in schema_file, as shop.Order")
        return ProtobufReader(
            descriptors_of_file(Path(told.schema_file)), told.message, is_numbered=bool(told.registry)
        )
    if not (told.registry and told.subject):
        raise ConfigError("Protobuf needs schema_file, or registry and subject")
    descriptors, first = latest_descriptors(told.registry, told.subject)
    message = told.message or first
    message_class(descriptors, message)  # raises for one that is not there
    return ProtobufReader(descriptors, message, is_numbered=True, path=path_of(descriptors, message))


def json_columns(told: Described) -> str:
    """The fields of a JSON body as DDL; raises ConfigError or RegistryError."""
    if told.schema:
        return told.schema
    if not told.registry and not told.schema_file:
        raise ConfigError("JSON needs one of schema, schema_file and registry (with subject)")
    if told.registry and not told.schema_file and not told.subject:
        raise ConfigError("a registry needs the subject whose newest schema the columns are to have")
    if told.schema_file:
        return columns_of(read_file(Path(told.schema_file)).decode("utf-8", "replace"))
    return columns_of(latest_schema(told.registry, told.subject))


def json_text(body: "Column | str", *, is_numbered: bool) -> "Column":
    """A body as text; NULL where the number of its schema should stand before it and does not."""
    from pyspark.sql import functions as fn

    column = fn.col(body) if isinstance(body, str) else body
    if not is_numbered:
        return column.cast("string")
    rest = fn.substring(column, fn.lit(6), fn.length(column))
    return fn.when(fn.hex(fn.substring(column, 1, 1)) == "00", rest.cast("string"))


def _avro(told: Described) -> AvroReader:
    given = [name for name in (told.schema, told.schema_file, told.registry) if name]
    if len(given) != 1:
        raise ConfigError("Avro needs one of schema, schema_file and registry (with subject)")
    if told.registry and not told.subject:
        raise ConfigError("a registry needs the subject whose newest schema the columns are to have")
    if told.registry:
        text = latest_schema(told.registry, told.subject)
    else:
        text = told.schema or read_file(Path(told.schema_file)).decode("utf-8", "replace")
    parsed(text)  # raises for what is no schema
    return AvroReader(text, told.registry)


def values_of(reader: BodyReader, bodies: "pa.Array") -> "pa.Array":
    """What bodies say; null for each that cannot be read, or does not fit its column."""
    kind = reader.arrow_type
    found = [_value_of(reader, body.as_py()) for body in bodies]
    try:
        return pa.array(found, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([each if _fits(each, kind) else None for each in found], kind)


def _value_of(reader: BodyReader, body: bytes | None) -> Any:
    if body is None:
        return None
    try:
        return reader.read(body)
    except BodyUnreadable:
        return None


def _fits(value: Any, kind: "pa.DataType") -> bool:
    try:
        pa.array([value], kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return False
    return True


def decoded(body: "Column | str", reader: BodyReader) -> "Column":
    """The column; null where a body cannot be read."""
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.pandas.types import from_arrow_type

    def read(bodies: pa.Array) -> pa.Array:
        return values_of(reader, bodies)

    column: Column = arrow_udf(read, from_arrow_type(reader.arrow_type))(body)  # type: ignore[call-overload]
    return column
