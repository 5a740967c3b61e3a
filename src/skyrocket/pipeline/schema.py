"""The one row schema of all sources: a column per field of a stored message, with its type in Arrow.

Spark compares the first Arrow batch of a source with its own schema exactly: order, type, nullability. So its schema is
made of ours. A user prunes by passing a schema with fewer columns; only these are then decoded.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from skyrocket.errors import ConfigError
from skyrocket.pipeline.options import nearest

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

PropertiesForm = Literal["map", "raw", "none"]
PROPERTIES_FORMS: tuple[PropertiesForm, ...] = ("map", "raw", "none")

TIMESTAMP = pa.timestamp("us", tz="UTC")
COLUMNS: dict[str, pa.DataType] = {
    "topic": pa.string(),
    "brokerName": pa.string(),
    "queueId": pa.int32(),
    "queueOffset": pa.int64(),
    "commitLogOffset": pa.int64(),
    "msgId": pa.string(),  # the broker's id: store host and commit-log offset
    "uniqKey": pa.string(),  # the client's id
    "keys": pa.string(),
    "tags": pa.string(),
    "bornTimestamp": TIMESTAMP,
    "bornHost": pa.string(),
    "storeTimestamp": TIMESTAMP,
    "storeHost": pa.string(),
    "reconsumeTimes": pa.int32(),
    "sysFlag": pa.int32(),
    "flag": pa.int32(),
    "preparedTransactionOffset": pa.int64(),
    "bodyCRC": pa.int32(),
    "body": pa.binary(),
    "properties": pa.map_(pa.string(), pa.string()),
}


def arrow_schema(names: Iterable[str] | None = None, properties: PropertiesForm = "map") -> pa.Schema:
    """The columns of these names (all when None) in the order given; `none` leaves the properties out."""
    table = dict(COLUMNS)
    if properties == "raw":
        table["properties"] = pa.binary()  # the stored text, undecoded
    if properties == "none":
        del table["properties"]
    return pa.schema([(_known(name, table), table[name]) for name in (table if names is None else names)])


def spark_schema(names: Iterable[str] | None = None, properties: PropertiesForm = "map") -> "StructType":
    """The schema as Spark's own type, all columns nullable."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(arrow_schema(names, properties))


def wanted_schema(asked: "StructType", properties: PropertiesForm = "map") -> pa.Schema:
    """The Arrow schema of the columns that a user's Spark schema asks for; refuses other names and other types."""
    for field, ours in zip(asked.fields, spark_schema(asked.names, properties).fields, strict=True):
        kind, asked_kind = ours.dataType.simpleString(), field.dataType.simpleString()
        if asked_kind != kind:
            raise ConfigError(
                f"column {field.name!r} is of type {kind}, and the schema asks for {asked_kind}; ask for "
                f"{field.name} {kind} and cast it afterwards"
            )
    return arrow_schema(asked.names, properties)


def _known(name: str, table: dict[str, pa.DataType]) -> str:
    if name in table:
        return name
    if name == "properties":
        raise ConfigError("the option properties=none leaves out the column 'properties'; set it to map or raw")
    hint = f"did you mean {meant!r}?" if (meant := nearest(name, table)) else f"there are: {', '.join(table)}"
    raise ConfigError(f"there is no column {name!r}; {hint}")
