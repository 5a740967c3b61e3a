"""JSON, Avro and Protobuf bodies as columns, without a jar; the last two are decoded in Spark's Python workers.

    orders.select(from_avro("body", schema_file="order.avsc").alias("order")).select("order.*")
    orders.select(from_avro("body", registry="http://127.0.0.1:8081", subject="orders-value"))
    orders.select(from_protobuf("body", schema_file="order.desc", message="shop.Order"))
    orders.select(from_json_body("body", registry="http://127.0.0.1:8081", subject="orders-value"))

A body that cannot be read is NULL: filter by it to keep such rows apart.

avro, protobuf     a schema ▸ types of columns, and a body ▸ values
json_schema        a schema ▸ types of columns; Spark itself reads JSON
columns            the functions above

Schemas themselves are read by `skyrocket.schemas`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["from_avro", "from_json_body", "from_protobuf"]


def from_avro(
    body: "Column | str", *, schema: str = "", schema_file: str = "", registry: str = "", subject: str = ""
) -> "Column":
    """A struct with the fields of the schema; NULL for what cannot be read. Raises ConfigError."""
    from skyrocket.pipeline.bodies.columns import Described, decoded, reader_of

    return decoded(body, reader_of(Described("avro", schema, schema_file, registry, subject)))


def from_protobuf(
    body: "Column | str", *, schema_file: str = "", message: str = "", registry: str = "", subject: str = ""
) -> "Column":
    """A struct with the fields of the message; NULL for what cannot be read. Raises ConfigError.

    The file is a .proto file, or what `protoc --include_imports --descriptor_set_out=order.desc order.proto` writes.
    With a registry bodies begin with the number of their schema; without a file the columns are those of the subject's
    newest one, and of its first message unless `message` names another.
    """
    from skyrocket.pipeline.bodies.columns import Described, decoded, reader_of

    return decoded(body, reader_of(Described("protobuf", "", schema_file, registry, subject, message)))


def from_json_body(
    body: "Column | str", *, schema: str = "", schema_file: str = "", registry: str = "", subject: str = ""
) -> "Column":
    """A struct with the fields of the schema; NULL for what cannot be read. Raises ConfigError.

    `schema` is DDL ("id string, amount double"), a file and a registry have JSON Schemas; with a registry bodies begin
    with the number of their schema.
    """
    from pyspark.sql import functions as fn

    from skyrocket.pipeline.bodies.columns import Described, json_columns, json_text

    columns = json_columns(Described("json", schema, schema_file, registry, subject))
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "__corrupt"}
    found = fn.from_json(json_text(body, is_numbered=bool(registry)), f"{columns}, __corrupt string", options)
    return fn.when(found["__corrupt"].isNull(), found.dropFields("__corrupt"))
