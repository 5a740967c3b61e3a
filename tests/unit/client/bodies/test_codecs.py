"""Bodies as values: each type there and back, and what does not fit named by its place."""

import contextlib
import dataclasses
import enum
import json
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from google.protobuf.struct_pb2 import Struct as ProtobufStruct
from hypothesis import given
from hypothesis import strategies as st

from skyrocket import Message
from skyrocket.client.bodies.avro import Avro
from skyrocket.client.bodies.codecs import as_body, codec_for
from skyrocket.client.bodies.values import NotReadable
from skyrocket.errors import MessageRefused

ID = UUID("12345678-1234-5678-1234-567812345678")


class State(enum.Enum):
    NEW = "new"
    PAID = "paid"


@dataclasses.dataclass
class Item:
    name: str
    price: Decimal
    count: int = 1


@dataclasses.dataclass
class Order:
    number: UUID
    at: datetime
    items: list[Item]
    state: State = State.NEW
    note: str | None = None
    sizes: dict[str, float] = dataclasses.field(default_factory=dict)
    day: date | None = None
    kind: Literal["a", "b"] = "a"
    pair: tuple[int, str] = (0, "")
    parts: "list[Order]" = dataclasses.field(default_factory=list)


ORDER = Order(
    ID,
    datetime(2026, 1, 31, 12, tzinfo=UTC),
    [Item("cup", Decimal("9.99"), 2)],
    State.PAID,
    "thanks",
    {"m": 1.5},
    date(2026, 1, 31),
    "b",
    (1, "x"),
    [Order(ID, datetime(2026, 1, 1, tzinfo=UTC), [])],
)


class PydanticOrder(pydantic.BaseModel):
    number: UUID
    price: Decimal


class StructOrder(msgspec.Struct):
    number: UUID
    price: float


class TypedOrder(TypedDict):
    number: str
    note: NotRequired[str]


AVRO = {
    "type": "record",
    "name": "Item",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "count", "type": "int"},
    ],
}
TEXTS = ProtobufStruct()
TEXTS.update({"cup": "blue"})


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (bytes, b"\x00\xff"),
        (str, "grüße"),
        (dict, {"a": [1, None, True]}),
        (dict[str, int], {"a": 1}),
        (list[Item], [Item("cup", Decimal("1.10"))]),
        (Order, ORDER),
        (TypedOrder, {"number": "7"}),
        (PydanticOrder, PydanticOrder(number=ID, price=Decimal("1.50"))),
        (StructOrder, StructOrder(ID, 1.5)),
        (ProtobufStruct, TEXTS),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_value_is_the_same_after_its_way_through_a_body(kind: Any, value: object) -> None:
    assert codec_for(kind).decode(as_body(value)) == value


def test_avro_takes_its_schema_and_gives_the_type_that_is_asked_for() -> None:
    for schema in (AVRO, json.dumps(AVRO)):
        codec = codec_for(Annotated[Item, Avro(schema)])
        cup = Item("cup", Decimal("9.99"), 2)
        assert codec.decode(codec.encode(cup)) == cup
        assert codec_for(Annotated[dict, Avro(schema)]).decode(codec.encode(cup)) == dataclasses.asdict(cup)
    with pytest.raises(ValueError, match="does not fit the Avro schema"):
        codec.encode("cup")
    with pytest.raises(NotReadable, match="bytes are left behind the datum"):
        codec.decode(codec.encode(cup) + b"x")
    with pytest.raises(NotReadable, match="no datum of the Avro schema"):
        codec.decode(b"\x06cu")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ({"type": "int", "logicalType": "date"}, b"\xfe\xff\xff\xff\x0f"),
        ({"type": "long", "logicalType": "timestamp-micros"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ({"type": "int", "logicalType": "time-millis"}, b"\xfe\xff\xff\xff\x0f"),
        ("string", b"\x02\xff"),
    ],
)
def test_avro_values_that_python_cannot_hold_are_not_readable(kind: Any, body: bytes) -> None:
    codec = Avro({"type": "record", "name": "R", "fields": [{"name": "value", "type": kind}]})
    with pytest.raises(NotReadable, match="no datum of the Avro schema"):
        codec.decode(body)


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ({"type": "array", "items": "null"}, b"\x80\x80\x80\x80\x80\x80\x80\x80\x20\x00", "more than .* values"),
        (["null", "Box"], b"\x02" * 500_000 + b"\x00", "deeper than 100 levels"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            b"\x80\xea\x30" + b"\x7f" * 400_000,
            "a decimal of 400,000 bytes",
        ),
    ],
    ids=["count", "nesting", "decimal"],
)
def test_a_body_of_avro_that_would_take_all_memory_or_time_is_not_readable(kind: Any, body: bytes, reason: str) -> None:
    box = Avro({"type": "record", "name": "Box", "fields": [{"name": "all", "type": kind}]})
    with pytest.raises(NotReadable, match=reason):
        box.decode(body)


class Reversed:
    """A codec of one's own."""

    def encode(self, value: str, /) -> bytes:
        return value[::-1].encode()

    def decode(self, body: bytes, /) -> str:
        return body.decode()[::-1]


def test_a_codec_of_ones_own_stands_beside_the_type() -> None:
    codec = codec_for(Annotated[str, "a remark", Reversed()])
    assert (codec.encode("abc"), codec.decode(b"cba")) == (b"cba", "abc")
    assert Message.of("Orders", "abc", Reversed(), tags="x").body == b"cba"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[]", "[] is no object"),
        (b'{"name":"cup"}', "price missing"),
        (b'{"name":"cup","price":"x"}', ".price: 'x' is no Decimal"),
        (b'{"name":5,"price":1}', ".name: 5 is no text"),
        (b'{"name":"cup","price":1,"count":true}', ".count: True is no int"),
        (b"{", "unexpected end of data: line 1 column 2 (char 1)"),
    ],
)
def test_what_does_not_fit_is_named_by_its_place(body: bytes, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        codec_for(Item).decode(body)
    assert str(caught.value) == said


def test_the_place_is_the_whole_way_through_nested_values() -> None:
    good = json.loads(as_body(ORDER))
    for change, said in (
        ({"items": [{"name": "a", "price": 1}, {"name": "b", "price": []}]}, ".items[1].price: [] is no Decimal"),
        ({"state": "gone"}, ".state: 'gone' is no State"),
        ({"at": "noon"}, ".at: 'noon' is no datetime (ISO 8601)"),
        ({"number": 7}, ".number: 7 is no UUID"),
        ({"note": 1}, ".note: 1 is no text; 1 is no null"),
        ({"sizes": {"m": "x"}}, ".sizes['m']: 'x' is no number"),
        ({"kind": "c"}, ".kind: 'c' is no 'a' or 'b'"),
        ({"pair": [1]}, ".pair: [1] is no list of 2"),
    ):
        with pytest.raises(NotReadable) as caught:
            codec_for(Order).decode(as_body(good | change))
        assert str(caught.value) == said


def test_fields_of_newer_producers_are_passed_over() -> None:
    assert codec_for(Item).decode(b'{"name":"cup","price":"1","colour":"blue"}') == Item("cup", Decimal(1))


@pytest.mark.parametrize("kind", [int, float, object, Mapping[str, int] | None, complex, type], ids=range(6))
def test_a_type_that_no_body_can_be_is_refused(kind: Any) -> None:
    with pytest.raises(NotReadable, match="is no type of a body: use bytes, str, dict, list"):
        codec_for(kind)


def test_a_dataclass_with_a_field_that_json_cannot_be_is_refused() -> None:
    @dataclasses.dataclass
    class Odd:
        number: complex

    with pytest.raises(NotReadable, match="complex cannot be read from JSON: give a codec of your own"):
        codec_for(Odd)


def test_message_json_knows_what_orjson_knows_and_more() -> None:
    value = {
        "uuid": ID,
        "decimal": Decimal("1.10"),
        "at": datetime(2026, 1, 31, tzinfo=UTC),
        "item": Item("cup", Decimal(1)),
        "model": PydanticOrder(number=ID, price=Decimal(2)),
        "struct": StructOrder(ID, 1.5),
        "large": 1,
        1: {3},
    }
    assert json.loads(Message.json("Orders", value).body) == {
        "uuid": str(ID),
        "decimal": "1.10",
        "at": "2026-01-31T00:00:00+00:00",
        "item": {"name": "cup", "price": "1", "count": 1},
        "model": {"number": str(ID), "price": "2"},
        "struct": {"number": str(ID), "price": 1.5},
        "large": 1,
        "1": [3],
    }
    assert Message.json("Orders", {"large": 1 << 80}).body == b'{"large":1208925819614629174706176}'
    with pytest.raises(MessageRefused, match=r"topic Orders cannot be JSON: .*has no form in JSON: give its parts"):
        Message.json("Orders", {"x": object()})


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(1 << 53), 1 << 53)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ).map(lambda inner: {"value": inner})
)
def test_any_json_comes_back(value: dict[str, Any]) -> None:
    assert codec_for(dict).decode(as_body(value)) == value


@given(st.binary())
def test_random_bytes_raise_nothing_but_value_errors(body: bytes) -> None:
    for kind in (str, dict, Order, TypedOrder, PydanticOrder, StructOrder, Annotated[Item, Avro(AVRO)]):
        with contextlib.suppress(ValueError, OverflowError):
            codec_for(kind).decode(body)


def test_without_the_library_avro_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(Exception, match=r"Avro bodies need fastavro: pip install 'skyrocket\[avro\]'"):
        Avro(AVRO)


def test_what_pydantic_finds_is_said_in_one_line() -> None:
    with pytest.raises(NotReadable) as caught:
        codec_for(PydanticOrder).decode(b'{"number": "x"}')
    assert "\n" not in str(caught.value)
    assert "number: Input should be a valid UUID" in str(caught.value)
    assert isinstance(caught.value.__cause__, pydantic.ValidationError)
