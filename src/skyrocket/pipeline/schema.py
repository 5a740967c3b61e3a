"""The one row schema of all sources, as Spark's own type.

Spark compares the first Arrow batch of a source with its own schema exactly: order, type, nullability. So its schema is
made of ours. A user prunes by passing a schema with fewer columns; only these are then decoded.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from skyrocket.columns.schema import PropertiesForm, arrow_schema
from skyrocket.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


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
