"""JSON, Avro and Protobuf bodies as columns, without Spark."""

import base64
import io
import json
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.errors import ConfigError
from skyrocket.pipeline.bodies.avro import AvroReader
from skyrocket.pipeline.bodies.columns import BodyReader, Described, json_columns, reader_of, values_of
from skyrocket.pipeline.bodies.protobuf import ProtobufReader
from skyrocket.schemas.avro import bounds_of
from skyrocket.schemas.numbered import BodyUnreadable
from skyrocket.schemas.protobuf import message_class
from skyrocket.schemas.registry import RegistryError
from tests.schema_registry import schema_registry

COUNT_OF_2_TO_60 = b"\x80" * 8 + b"\x20"
NOON = datetime(2026, 1, 31, 12, 0, 0, 250_000, UTC)
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "ref", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "before", "type": ["null", "State"], "default": None},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "Line", "fields": [{"name": "n", "type": "int"}]},
            },
        },
        {"name": "tags", "type": {"type": "map", "values": "double"}},
    ],
}
VALUE: dict[str, Any] = {
    "id": "o-1",
    "amount": Decimal("12.50"),
    "at": NOON,
    "day": date(2026, 1, 31),
    "state": "PAID",
    "before": None,
    "ref": UUID(int=7),
    "lines": [{"n": 1}, {"n": 2}],
    "tags": {"a": 0.5},
}


def datum(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def read(reader: BodyReader, *bodies: bytes | None) -> list[Any]:
    found: list[Any] = values_of(reader, pa.array(bodies, pa.binary())).to_pylist()
    return found


def avro(schema: Any = ORDER) -> BodyReader:
    return reader_of(Described("avro", json.dumps(schema)))


def test_a_datum_becomes_the_columns_of_its_schema(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
    reader = reader_of(Described("avro", schema_file=str(tmp_path / "order.avsc")))
    (found,) = read(reader, datum(ORDER, VALUE))
    assert found == {**VALUE, "ref": str(VALUE["ref"]), "tags": [("a", 0.5)]}
    assert str(reader.arrow_type.field("amount").type) == "decimal128(9, 2)"
    assert str(reader.arrow_type.field("day").type) == "date32[day]"


@given(st.binary(max_size=60))
def test_any_bytes_are_a_datum_or_nothing(body: bytes) -> None:
    assert len(read(avro(), body, None, datum(ORDER, VALUE))) == 3
    assert read(avro(), body + b"rest of another schema" * 4) == [None]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("{", "cannot be read"),
        ('"string"', "is no record"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "string"]}]}', "union of 2 types"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "R"]}]}', "contains itself"),
    ],
)
def test_a_schema_without_columns_is_refused(schema: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        reader_of(Described("avro", schema))


def test_what_is_said_of_avro_must_be_one_thing() -> None:
    with pytest.raises(ConfigError, match="one of schema, schema_file and registry"):
        reader_of(Described("avro"))
    with pytest.raises(ConfigError, match="needs the subject"):
        reader_of(Described("avro", registry="http://127.0.0.1:1"))
    with pytest.raises(ConfigError, match=r"nothing\.avsc cannot be read"):
        reader_of(Described("avro", schema_file="nothing.avsc"))


# ── a registry ───────────────────────────────────────────────────────────────────────────────────────────────────────

OLDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}
NEWER = {**OLDER, "fields": [*OLDER["fields"], {"name": "city", "type": "string", "default": "?"}]}


PROTO = """syntax = "proto3"; package shop; message Order { string id = 1; repeated int32 lines = 2; }"""
ACCOUNT = "Basic " + base64.b64encode(b"me:p@ss").decode()
JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "amount": {"oneOf": [{"type": "null"}, {"type": "number"}]},
        "at": {"type": ["string", "null"], "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        "tags": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "any": {"type": ["string", "integer"]},
        "odd`name": {"enum": [1, "two"]},
    },
    "$defs": {"Line": {"type": "object", "properties": {"article": {"type": "string"}, "count": {"type": "integer"}}}},
}


@pytest.fixture
def registry() -> Iterator[str]:
    """Answers as Confluent's does: schemas 1 and 2, of one subject; subjects of Protobuf and of JSON; an account."""
    answers = {
        "/schemas/ids/1": {"schema": json.dumps(OLDER)},
        "/schemas/ids/2": {"schema": json.dumps(NEWER)},
        "/subjects/orders-value/versions/latest": {"id": 2, "version": 2, "schema": json.dumps(NEWER)},
        "/subjects/json-value/versions/latest": {"schemaType": "JSON", "schema": json.dumps(JSON_SCHEMA)},
        "/subjects/shop/versions/latest?format=serialized": serialized(shop_file(), {"states.proto": "states"}),
        "/subjects/states/versions/3?format=serialized": serialized(states_file(), {}),
        "/subjects/text/versions/latest?format=serialized": {"schemaType": "PROTOBUF", "schema": PROTO},
        "/subjects/empty/versions/latest?format=serialized": {"schemaType": "PROTOBUF", "schema": "package shop;"},
        "/subjects/orders-value/versions/latest?format=serialized": {"schema": json.dumps(NEWER)},
        "/secret/subjects/orders-value/versions/latest": {"schema": json.dumps(NEWER)},
    }

    with schema_registry(answers, {"/secret/": ACCOUNT}) as address:
        yield address


def numbered(number: int, body: bytes) -> bytes:
    return struct.pack(">bI", 0, number) + body


def test_bodies_of_older_schemas_are_read_as_the_newest_says(registry: str) -> None:
    reader = reader_of(Described("avro", registry=registry, subject="orders-value"))
    bodies = [
        numbered(1, datum(OLDER, {"id": "a"})),
        numbered(2, datum(NEWER, {"id": "b", "city": "Bern"})),
        datum(NEWER, {"id": "c", "city": "without a number"}),
    ]
    assert read(reader, *bodies) == [{"id": "a", "city": "?"}, {"id": "b", "city": "Bern"}, None]


def test_a_registry_that_does_not_know_or_answer_is_told(registry: str) -> None:
    with pytest.raises(RegistryError, match="404"):
        reader_of(Described("avro", registry=registry, subject="nobody"))
    reader = reader_of(Described("avro", registry=registry, subject="orders-value"))
    with pytest.raises(RegistryError, match="404"):
        read(reader, numbered(99, b""))  # not malformed: nobody knows what it says
    with pytest.raises(ConfigError, match="http://host:8081"):
        reader_of(Described("avro", registry="file:///etc", subject="x"))


def test_a_registry_is_told_the_account_of_its_address_and_errors_do_not_show_it(registry: str) -> None:
    address = registry.replace("http://", "http://me:p%40ss@") + "/secret"
    assert reader_of(Described("avro", registry=address, subject="orders-value")).arrow_type.num_fields == 2
    with pytest.raises(RegistryError, match="404") as raised:
        reader_of(Described("avro", registry=address, subject="nobody"))
    assert "p%40ss" not in str(raised.value)
    with pytest.raises(RegistryError, match="Connection refused; check that the registry runs"):
        reader_of(Described("avro", registry="http://127.0.0.1:1", subject="x"))


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_json_schema_becomes_columns_and_what_they_cannot_say_stays_text(registry: str, tmp_path: Path) -> None:
    expected = (
        "`id` string, `amount` double, `at` timestamp, `day` date, "
        "`lines` array<struct<`article`: string, `count`: bigint>>, `tags` map<string, boolean>, "
        "`any` string, `odd``name` string"
    )
    assert json_columns(Described("json", registry=registry, subject="json-value")) == expected
    file = tmp_path / "order.json"
    file.write_text(json.dumps({"$ref": "#/definitions/Order", "definitions": {"Order": JSON_SCHEMA}}))
    with pytest.raises(ConfigError, match=r"refers to #/\$defs/Line, which is not in it"):
        json_columns(Described("json", schema_file=str(file)))
    file.write_text(json.dumps(JSON_SCHEMA))
    assert json_columns(Described("json", schema_file=str(file))) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "is no object"),
        ('{"type": "string"}', "no object with properties"),
        ('{"properties": {"a": {"$ref": "#"}}}', "contains itself"),
    ],
)
def test_a_json_schema_without_columns_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "order.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        json_columns(Described("json", schema_file=str(file)))


# ── Protobuf ─────────────────────────────────────────────────────────────────────────────────────────────────────────

FIELD = descriptor_pb2.FieldDescriptorProto


def descriptors() -> bytes:
    """As protoc would write it for shop.Order."""
    times = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(times)
    file = descriptor_pb2.FileDescriptorProto(
        name="shop.proto", package="shop", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    state = file.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="PAID", number=1)
    node = file.message_type.add(name="Node")
    node.field.add(name="next", number=1, type=FIELD.TYPE_MESSAGE, type_name=".shop.Node", label=FIELD.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")
    tags = order.nested_type.add(name="TagsEntry")
    tags.options.map_entry = True
    tags.field.add(name="key", number=1, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL)
    tags.field.add(name="value", number=2, type=FIELD.TYPE_DOUBLE, label=FIELD.LABEL_OPTIONAL)
    kinds = {"id": FIELD.TYPE_STRING, "count": FIELD.TYPE_UINT32, "big": FIELD.TYPE_UINT64, "raw": FIELD.TYPE_BYTES}
    for number, (name, kind) in enumerate(kinds.items(), 1):
        order.field.add(name=name, number=number, type=kind, label=FIELD.LABEL_OPTIONAL)
    one, many = FIELD.LABEL_OPTIONAL, FIELD.LABEL_REPEATED
    order.field.add(name="state", number=5, type=FIELD.TYPE_ENUM, type_name=".shop.State", label=one)
    order.field.add(name="at", number=6, type=FIELD.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=one)
    order.field.add(name="lines", number=7, type=FIELD.TYPE_INT32, label=many)
    order.field.add(name="tags", number=8, type=FIELD.TYPE_MESSAGE, type_name=".shop.Order.TagsEntry", label=many)
    return descriptor_pb2.FileDescriptorSet(file=[times, file]).SerializeToString()


@pytest.fixture
def order_file(tmp_path: Path) -> str:
    path = tmp_path / "order.desc"
    path.write_bytes(descriptors())
    return str(path)


def test_a_message_becomes_the_columns_of_its_fields(order_file: str) -> None:
    reader = reader_of(Described("protobuf", schema_file=order_file, message="shop.Order"))
    order = message_class(descriptors(), "shop.Order")(id="o-1", count=2**32 - 1, big=2**64 - 1, raw=b"\xff", state=1)
    order.at.FromDatetime(NOON)
    order.lines.extend([3, 4])
    order.tags["a"] = 0.5
    found, empty, bad = read(reader, order.SerializeToString(), b"", b"\xff\xff")
    assert found == {
        "id": "o-1",
        "count": 2**32 - 1,
        "big": Decimal(2**64 - 1),
        "raw": b"\xff",
        "state": "PAID",
        "at": NOON,
        "lines": [3, 4],
        "tags": [("a", 0.5)],
    }
    assert (empty["id"], empty["at"], empty["state"], bad) == ("", None, "NEW", None)


def states_file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="", package="shop", syntax="proto3")
    state = file.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="PAID", number=1)
    return file


def shop_file() -> descriptor_pb2.FileDescriptorProto:
    """Two messages, the second with another inside; imports a file of the registry and one of the library."""
    imported = ["states.proto", "google/protobuf/timestamp.proto"]
    file = descriptor_pb2.FileDescriptorProto(name="", package="shop", syntax="proto3", dependency=imported)
    order, basket = file.message_type.add(name="Order"), file.message_type.add(name="Basket")
    one = FIELD.LABEL_OPTIONAL
    order.field.add(name="id", number=1, type=FIELD.TYPE_STRING, label=one)
    order.field.add(name="state", number=2, type=FIELD.TYPE_ENUM, type_name=".shop.State", label=one)
    order.field.add(name="at", number=3, type=FIELD.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=one)
    basket.nested_type.add(name="Line").field.add(name="article", number=1, type=FIELD.TYPE_STRING, label=one)
    return file


def serialized(file: descriptor_pb2.FileDescriptorProto, imported: dict[str, str]) -> dict[str, Any]:
    """As the registry answers to format=serialized."""
    references = [{"name": name, "subject": subject, "version": 3} for name, subject in imported.items()]
    text = base64.b64encode(file.SerializeToString()).decode()
    return {"schemaType": "PROTOBUF", "schema": text, "references": references}


def test_protobuf_bodies_of_a_registry_are_read_by_their_message_in_its_file(registry: str) -> None:
    reader = reader_of(Described("protobuf", registry=registry, subject="shop"))
    assert isinstance(reader, ProtobufReader)
    order = message_class(reader.descriptors, "shop.Order")(id="o-1", state=1)
    order.at.FromDatetime(NOON)
    data = order.SerializeToString()
    bodies = (numbered(7, b"\0" + data), numbered(7, b"\2\0" + data), numbered(7, b"\2\2" + data), data, b"\0\0", b"")
    expected = {"id": "o-1", "state": "PAID", "at": NOON}
    assert read(reader, *bodies) == [expected, expected, None, None, None, None]
    line = reader_of(Described("protobuf", registry=registry, subject="shop", message="shop.Basket.Line"))
    assert read(line, numbered(7, b"\4\2\0" + b"\x0a\x03tea")) == [{"article": "tea"}]


def test_a_proto_file_is_as_good_as_descriptors_from_disk_and_from_a_registry(registry: str, tmp_path: Path) -> None:
    (tmp_path / "order.proto").write_text(PROTO)
    data = b"\x0a\x03o-1\x12\x02\x03\x04"
    of_registry = reader_of(Described("protobuf", registry=registry, subject="text"))
    of_file = reader_of(Described("protobuf", schema_file=str(tmp_path / "order.proto"), message="shop.Order"))
    assert read(of_registry, numbered(7, b"\0" + data)) == read(of_file, data) == [{"id": "o-1", "lines": [3, 4]}]


def test_a_file_of_descriptors_beside_a_registry_is_enough(order_file: str) -> None:
    reader = reader_of(
        Described("protobuf", schema_file=order_file, registry="http://127.0.0.1:1", message="shop.Order")
    )
    found, bare = read(reader, numbered(7, b"\2\2" + b"\x0a\x03o-1"), b"\x0a\x03o-1")
    assert (found["id"], bare) == ("o-1", None)


@pytest.mark.parametrize(
    ("subject", "message", "said"),
    [
        ("empty", "", "has no message"),
        ("orders-value", "", "a schema of AVRO, not of PROTOBUF"),
        ("shop", "shop.Odrer", "they have .*shop.Order"),
        ("", "", "schema_file, or registry and subject"),
    ],
)
def test_what_a_registry_has_not_is_told(registry: str, subject: str, message: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        reader_of(Described("protobuf", registry=registry, subject=subject, message=message))


def test_a_message_that_is_not_there_or_contains_itself_is_refused(order_file: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no message shop\.Odrer; they have .*shop\.Order"):
        reader_of(Described("protobuf", schema_file=order_file, message="shop.Odrer"))
    with pytest.raises(ConfigError, match="contains itself"):
        reader_of(Described("protobuf", schema_file=order_file, message="shop.Node"))
    (tmp_path / "order.desc").write_text('syntax = "proto3";')
    with pytest.raises(ConfigError, match="--descriptor_set_out"):
        reader_of(Described("protobuf", schema_file=str(tmp_path / "order.desc"), message="shop.Order"))


def record_of(kind: Any) -> str:
    return json.dumps({"type": "record", "name": "Box", "fields": [{"name": "all", "type": kind}]})


@pytest.mark.parametrize(
    "items",
    [
        pytest.param("null", id="null"),
        pytest.param({"type": "fixed", "name": "None", "size": 0}, id="fixed"),
        pytest.param({"type": "record", "name": "Empty", "fields": []}, id="record"),
        pytest.param({"type": "record", "name": "Hollow", "fields": [{"name": "n", "type": "null"}]}, id="nulls"),
    ],
)
def test_a_few_bytes_that_say_a_million_million_empty_items_are_refused(items: Any) -> None:
    reader = AvroReader(record_of({"type": "array", "items": items}))
    with pytest.raises(BodyUnreadable, match="the body has more than"):
        reader.read(COUNT_OF_2_TO_60 + b"\x00")
    assert len(reader.read(b"\x06\x00")["all"]) == 3


@pytest.mark.parametrize("kind", [{"type": "array", "items": "int"}, {"type": "map", "values": "null"}])
def test_a_count_of_items_with_bytes_ends_with_the_body(kind: Any) -> None:
    with pytest.raises(BodyUnreadable):
        AvroReader(record_of(kind)).read(COUNT_OF_2_TO_60 + b"\x00")


def test_a_body_of_a_writer_whose_type_is_in_itself_cannot_overrun_the_stack() -> None:
    """Columns have an end, but what another version of a schema has beside them is walked over all the same."""
    writer = {
        "type": "record",
        "name": "Box",
        "fields": [{"name": "id", "type": "int"}, {"name": "next", "type": ["null", "Box"]}],
    }
    ours = {"type": "record", "name": "Box", "fields": [{"name": "id", "type": "int"}]}
    with schema_registry({"/schemas/ids/1": {"schema": json.dumps(writer)}}) as registry:
        reader = AvroReader(json.dumps(ours), registry)
        assert reader.read(numbered(1, b"\x02\x02\x04\x00")) == {"id": 1}
        with pytest.raises(BodyUnreadable, match="deeper than 100 levels"):
            reader.read(numbered(1, b"\x02\x02" * 500_000 + b"\x02\x00"))


def test_a_decimal_of_so_many_digits_that_it_takes_minutes_is_refused() -> None:
    reader = AvroReader(record_of({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}))
    with pytest.raises(BodyUnreadable, match="a decimal of 400,000 bytes"):
        reader.read(b"\x80\xea\x30" + b"\x7f" * 400_000)
    assert reader.read(b"\x02\x7f")["all"] == Decimal("1.27")


def test_decimals_in_long_bodies_are_walked_over_wherever_they_are() -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    item = {"type": "record", "name": "Item", "fields": [{"name": "price", "type": ["null", price]}]}
    for kind in (item, {"type": "array", "items": item}, {"type": "map", "values": price}):
        assert bounds_of(record_of(kind)).has_decimals
    assert not bounds_of(record_of({"type": "map", "values": "bytes"})).has_decimals


@pytest.mark.parametrize("schema", [json.dumps(ORDER), '"bytes"', record_of("null")])
def test_bodies_of_usual_schemas_are_read_without_a_walk(schema: str) -> None:
    assert not bounds_of(schema).is_needed
