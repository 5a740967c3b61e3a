"""The one row schema of all sources: a column per field of a stored message, and what Arrow and Spark call its type.

Spark compares the first Arrow batch of a source with its own schema exactly: order, type, nullability. So both are
made here from one table. A user prunes by passing a schema with fewer columns; only these are then decoded.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

import pyarrow as pa

from skyrocket.errors import ConfigError
from skyrocket.pipeline.options import nearest

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

PropertiesForm = Literal["map", "raw", "none"]
PROPERTIES_FORMS: tuple[PropertiesForm, ...] = ("map", "raw", "none")

TIMESTAMP = pa.timestamp("us", tz="UTC")


class Column(NamedTuple):
    """A column's type as SQL says it, and as Arrow does."""

    sql: str
    arrow: pa.DataType


COLUMNS: dict[str, Column] = {
    "topic": Column("string", pa.string()),
    "brokerName": Column("string", pa.string()),
    "queueId": Column("int", pa.int32()),
    "queueOffset": Column("bigint", pa.int64()),
    "commitLogOffset": Column("bigint", pa.int64()),
    "msgId": Column("string", pa.string()),  # the broker's id: store host and commit-log offset
    "uniqKey": Column("string", pa.string()),  # the client's id
    "keys": Column("string", pa.string()),
    "tags": Column("string", pa.string()),
    "bornTimestamp": Column("timestamp", TIMESTAMP),
    "bornHost": Column("string", pa.string()),
    "storeTimestamp": Column("timestamp", TIMESTAMP),
    "storeHost": Column("string", pa.string()),
    "reconsumeTimes": Column("int", pa.int32()),
    "sysFlag": Column("int", pa.int32()),
    "flag": Column("int", pa.int32()),
    "preparedTransactionOffset": Column("bigint", pa.int64()),
    "bodyCRC": Column("int", pa.int32()),
    "body": Column("binary", pa.binary()),
    "properties": Column("map<string,string>", pa.map_(pa.string(), pa.string())),
}
RAW_PROPERTIES = Column("binary", pa.binary())  # the stored text, undecoded


def columns(names: Iterable[str] | None = None, properties: PropertiesForm = "map") -> dict[str, Column]:
    """The columns of these names (all when None) in the order given; `none` leaves the properties out."""
    table = dict(COLUMNS)
    if properties == "raw":
        table["properties"] = RAW_PROPERTIES
    if properties == "none":
        del table["properties"]
    if names is None:
        return table
    return {_known(name, table): table[name] for name in names}


def arrow_schema(names: Iterable[str] | None = None, properties: PropertiesForm = "map") -> pa.Schema:
    """The schema of the record batches, all columns nullable."""
    return pa.schema([pa.field(name, column.arrow) for name, column in columns(names, properties).items()])


def spark_ddl(names: Iterable[str] | None = None, properties: PropertiesForm = "map") -> str:
    """The schema as Spark's `schema()` takes it from a text."""
    return ", ".join(f"{name} {column.sql}" for name, column in columns(names, properties).items())


def spark_schema(names: Iterable[str] | None = None, properties: PropertiesForm = "map") -> "StructType":
    """The schema as Spark's own type."""
    from pyspark.sql.types import (
        BinaryType,
        DataType,
        IntegerType,
        LongType,
        MapType,
        StringType,
        StructField,
        StructType,
        TimestampType,
    )

    kinds: dict[str, DataType] = {
        "string": StringType(),
        "int": IntegerType(),
        "bigint": LongType(),
        "timestamp": TimestampType(),
        "binary": BinaryType(),
        "map<string,string>": MapType(StringType(), StringType()),
    }
    return StructType([StructField(name, kinds[kind.sql]) for name, kind in columns(names, properties).items()])


def wanted_schema(asked: "StructType", properties: PropertiesForm = "map") -> pa.Schema:
    """The Arrow schema of the columns that a user's Spark schema asks for; refuses other names and other types."""
    table = columns(None, properties)
    for field in asked.fields:
        column = table[_known(field.name, table)]
        if field.dataType.simpleString() != column.sql:
            raise ConfigError(
                f"column {field.name!r} is of type {column.sql}, and the schema asks for "
                f"{field.dataType.simpleString()}; ask for {field.name} {column.sql} and cast it afterwards"
            )
    return arrow_schema([field.name for field in asked.fields], properties)


def _known(name: str, table: dict[str, Column]) -> str:
    if name in table:
        return name
    if name == "properties":
        raise ConfigError("the option properties=none leaves out the column 'properties'; set it to map or raw")
    hint = f"did you mean {meant!r}?" if (meant := nearest(name, table)) else f"there are: {', '.join(table)}"
    raise ConfigError(f"there is no column {name!r}; {hint}")
