"""Bodies as trees for people: what was written is what is shown, and no bytes take more than their share."""

import contextlib
import io
import json
import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import orjson
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.schemas.numbered import BodyUnreadable
from skyrocket.schemas.proto_text import file_descriptor
from skyrocket.schemas.protobuf import message_class
from skyrocket.schemas.readers import AvroTrees, JsonTrees, ProtobufTrees

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "ref", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "before", "type": ["null", "State"], "default": None},
        {"name": "raw", "type": {"type": "fixed", "name": "Two", "size": 2}},
        {"name": "big", "type": "long"},
        {"name": "ratio", "type": "double"},
        {"name": "parts", "type": {"type": "array", "items": ["null", "Order", "string"]}},
        {"name": "tags", "type": {"type": "map", "values": ["int", "boolean"]}},
    ],
}
LIST = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
NOTHINGS = {"type": "array", "items": "null"}
PROTO = """
syntax = "proto3";
package shop;  // the shop
import "google/protobuf/timestamp.proto";
/* all
   states */
enum State { option allow_alias = true; NEW = 0; PAID = 1 [deprecated = true]; SETTLED = 1; reserved 7; }
message Order {
  reserved 20 to 30, 40;
  option (note) = { text: "x" };
  message Line { string article = 1; optional int32 count = 2; }
  string id = 1 [json_name = "ID"];
  State state = 2;
  google.protobuf.Timestamp at = 3;
  repeated Line lines = 4;
  map<string, Order.Line> by_name = 5;
  oneof paid { int64 cents = 6; string voucher = 7; }
  uint64 big = 8;
  bytes raw = 9;
  Order before = 10;
  repeated sint32 numbers = 11;
}
service Shop { rpc Find (Order) returns (Order) { option (google.api.http) = { get: "/" }; } }
"""


def avro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def descriptors(text: str = PROTO) -> bytes:
    from google.protobuf import timestamp_pb2

    times = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(times)
    return descriptor_pb2.FileDescriptorSet(file=[times, file_descriptor(text, "shop.proto")]).SerializeToString()


def order(**changes: Any) -> dict[str, Any]:
    return {
        "id": "o-1",
        "price": Decimal("12.50"),
        "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
        "ref": UUID(int=7),
        "state": "PAID",
        "before": None,
        "raw": b"\xff\x00",
        "big": 2**60,
        "ratio": 0.5,
        "parts": [],
        "tags": {"a": 1, "b": True},
        **changes,
    }


def test_an_avro_record_becomes_a_tree_that_json_can_hold() -> None:
    body = avro(ORDER, order(ratio=float("nan"), parts=[None, "loose", ("shop.Order", order())]))
    inner: dict[str, Any] = {
        "id": "o-1",
        "price": "12.50",
        "at": "2026-01-31T12:00:00+00:00",
        "ref": str(UUID(int=7)),
        "state": "PAID",
        "before": None,
        "raw": "/wA=",
        "big": str(2**60),
        "ratio": 0.5,
        "parts": [],
        "tags": {"a": 1, "b": True},
    }
    found = AvroTrees(json.dumps(ORDER)).read(body)
    assert found == {**inner, "ratio": "nan", "parts": [None, "loose", inner]}
    assert orjson.loads(orjson.dumps(found)) == found


@given(
    st.recursive(
        st.fixed_dictionaries({"name": st.text(), "sizes": st.dictionaries(st.text(), st.integers(-(2**50), 2**50))}),
        lambda inner: st.fixed_dictionaries(
            {"name": st.text(), "sizes": st.just({}), "parts": st.lists(inner, max_size=3)}
        ),
        max_leaves=8,
    )
)
def test_whatever_was_written_in_avro_is_shown(value: Any) -> None:
    schema = {
        "type": "record",
        "name": "Box",
        "fields": [
            {"name": "name", "type": "string"},
            {"name": "sizes", "type": {"type": "map", "values": "long"}},
            {"name": "parts", "type": {"type": "array", "items": "Box"}, "default": []},
        ],
    }

    def whole(box: Any) -> Any:
        return {**box, "parts": [whole(each) for each in box.get("parts", [])]}

    assert AvroTrees(json.dumps(schema)).read(avro(schema, whole(value))) == whole(value)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_avro_tree_or_refused(body: bytes) -> None:
    for schema in (ORDER, LIST, NOTHINGS):
        with contextlib.suppress(BodyUnreadable):
            orjson.dumps(AvroTrees(json.dumps(schema)).read(body))


@pytest.mark.parametrize(
    ("schema", "body", "said"),
    [
        pytest.param(LIST, b"\x02" * 1_000_000 + b"\x00", "deeper than 100 levels", id="a-stack"),
        pytest.param(NOTHINGS, b"\xfe\xff\xff\xff\xff\xff\xff\x7f\x00", "more than 100,000 values", id="a-count"),
        pytest.param(NOTHINGS, b"\x01\x00" * 200_000, "more than 100,000 values", id="many-blocks"),
        pytest.param("string", b"\xfe\xff\xff\xff\x0fabc", "ends behind it", id="a-length"),
        pytest.param("string", b"\x01", "ends behind it", id="a-negative-length"),
        pytest.param("string", b"\x04abc", "bytes are left", id="a-rest"),
        pytest.param(["null", "int"], b"\x08", "type 4 of a union of 2", id="a-choice"),
        pytest.param("long", b"\xff" * 30, "has no end", id="a-number"),
        pytest.param(
            {"type": "bytes", "logicalType": "decimal", "precision": 4},
            b"\x80\x80\x40" + b"\x7f" * 524_288,
            "decimal of 524,288 bytes",
            id="a-decimal",
        ),
        pytest.param(
            {"type": "long", "logicalType": "timestamp-millis"},
            b"\xfe" + b"\xff" * 8 + b"\x01",
            "no datum",
            id="a-time",
        ),
    ],
)
def test_hostile_avro_is_refused_with_the_reason(schema: Any, body: bytes, said: str) -> None:
    with pytest.raises(BodyUnreadable, match=said):
        AvroTrees(json.dumps(schema)).read(body)


def test_a_protobuf_message_of_a_proto_file_becomes_a_tree() -> None:
    one = message_class(descriptors(), "shop.Order")(id="o-1", state=1, cents=2**40, big=2**64 - 1, raw=b"\xff")
    one.at.FromSeconds(1_767_225_600)
    one.lines.add(article="tea", count=0)
    one.lines.add(article="cup")
    one.by_name["tea"].article = "green"
    one.numbers.extend([-1, 2])
    found = ProtobufTrees(descriptors(), "shop.Order").read(one.SerializeToString())
    assert found == {
        "id": "o-1",
        "state": "PAID",
        "at": "2026-01-01T00:00:00+00:00",
        "lines": [{"article": "tea", "count": 0}, {"article": "cup", "count": None}],
        "by_name": {"tea": {"article": "green", "count": None}},
        "cents": 2**40,
        "voucher": None,
        "big": str(2**64 - 1),
        "raw": "/w==",
        "before": None,
        "numbers": [-1, 2],
    }


@given(st.text(), st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20), st.dictionaries(st.text(), st.text()))
def test_whatever_was_written_in_protobuf_is_shown(name: str, numbers: list[int], lines: dict[str, str]) -> None:
    one = message_class(descriptors(), "shop.Order")(id=name, numbers=numbers)
    for key, article in lines.items():
        one.by_name[key].article = article
    found = ProtobufTrees(descriptors(), "shop.Order").read(one.SerializeToString())
    assert (found["id"], found["numbers"]) == (name, numbers)
    assert {key: line["article"] for key, line in found["by_name"].items()} == lines


@given(st.binary(max_size=200))
def test_any_bytes_are_a_protobuf_tree_or_refused(body: bytes) -> None:
    for reader in (ProtobufTrees(descriptors(), "shop.Order"), ProtobufTrees(descriptors())):
        with contextlib.suppress(BodyUnreadable):
            orjson.dumps(reader.read(body))


def nested(depth: int) -> bytes:
    body = b""
    for _ in range(depth):
        size, length = len(body), bytearray()
        while size > 0x7F:
            length.append(size & 0x7F | 0x80)
            size >>= 7
        body = b"\x52" + bytes([*length, size]) + body  # field 10, `before`
    return body


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(nested(1000), "is no shop.Order", id="a-stack"),
        pytest.param(b"\x22\x00" * 400_000, "more than 100,000 values", id="many-empty-lines"),
        pytest.param(b"\x5a\xff\xff\x3f" + b"\x00" * (2**20 - 1), "more than 100,000 values", id="a-million-numbers"),
        pytest.param(b"\xff\xff", "is no shop.Order", id="no-message"),
        pytest.param(b"\xd2\x0c\x01a\xda\x0c\x01b", "numbers 202, 203.*another schema", id="another-message"),
    ],
)
def test_hostile_protobuf_is_refused_with_the_reason(body: bytes, said: str) -> None:
    with pytest.raises(BodyUnreadable, match=said):
        ProtobufTrees(descriptors(), "shop.Order").read(body)


def test_a_text_of_proto2_that_is_not_utf8_is_shown_as_bytes() -> None:
    old = "syntax = 'proto2'; message Note { optional string text = 1; }"
    files = descriptor_pb2.FileDescriptorSet(file=[file_descriptor(old, "old.proto")])
    assert ProtobufTrees(files.SerializeToString(), "Note").read(b"\x0a\x02\xff\xfe") == {"text": "//4="}


def test_json_behind_a_number_is_read_and_deep_json_is_refused() -> None:
    assert JsonTrees().read(b'{"a": [1, 12345678901234567890]}') == {"a": [1, "12345678901234567890"]}
    for body in (b"[" * 100_000, b"[" * 300 + b"]" * 300, b"{", struct.pack(">d", 1.5)):
        with pytest.raises(BodyUnreadable):
            JsonTrees().read(body)
