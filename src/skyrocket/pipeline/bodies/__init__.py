"""Avro and Protobuf bodies as columns, without a jar: decoded in Spark's Python workers, by Arrow batches.

    orders.select(from_avro("body", schema_file="order.avsc").alias("order")).select("order.*")
    orders.select(from_avro("body", registry="http://127.0.0.1:8081", subject="orders-value"))
    orders.select(from_protobuf("body", schema_file="order.desc", message="shop.Order"))

A body that cannot be read is NULL: filter by it to keep such rows apart.

avro, protobuf     a schema ▸ types of columns, and a body ▸ values
registry           schemas by id, as Confluent's registry and Apicurio's `ccompat` give them
columns            the functions above
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["from_avro", "from_protobuf"]


def from_avro(
    body: "Column | str", *, schema: str = "", schema_file: str = "", registry: str = "", subject: str = ""
) -> "Column":
    """A struct with the fields of the schema; NULL for what cannot be read. Raises ConfigError."""
    from skyrocket.pipeline.bodies.columns import Described, decoded, reader_of

    return decoded(body, reader_of(Described("avro", schema, schema_file, registry, subject)))


def from_protobuf(body: "Column | str", *, schema_file: str, message: str) -> "Column":
    """A struct with the fields of the message; NULL for what cannot be read. Raises ConfigError.

    The file is what `protoc --include_imports --descriptor_set_out=order.desc order.proto` writes.
    """
    from skyrocket.pipeline.bodies.columns import Described, decoded, reader_of

    return decoded(body, reader_of(Described("protobuf", schema_file=schema_file, message=message)))
