"""Which topic has which schema, from a file; registries are asked at their configured address, and not too often."""

import json
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from skyrocket.errors import ConfigError
from skyrocket.schemas.catalog import Catalog, Decoded
from skyrocket.schemas.readers import reader_of_number
from skyrocket.testing.clock import FakeClock
from tests.schema_registry import schema_registry
from tests.unit.schemas.test_trees import avro

ORDER = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "string"}]}
BASKET = {"type": "record", "name": "Basket", "fields": [{"name": "order", "type": "shop.Order"}]}
PROTO = 'syntax = "proto3"; import "lines.proto"; message Payment { int32 cents = 1; Line line = 2; }'
LINES = 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message Line { string article = 1; }'


def catalog(folder: Path, text: str, **files: str) -> Catalog:
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    (folder / "schemas.toml").write_text(text)
    return Catalog.read(folder / "schemas.toml")


def numbered(number: int, body: bytes) -> bytes:
    return struct.pack(">bI", 0, number) + body


def test_the_first_entry_that_fits_a_topic_counts(tmp_path: Path) -> None:
    schemas = catalog(
        tmp_path,
        """
        [[schema]]
        topics = "Orders*"
        file = "order.avsc"
        [[schema]]
        topics = "OrdersOfToday"
        file = "other.avsc"
        """,
        order_avsc=json.dumps(ORDER),
        other_avsc='"int"',
    )
    body = avro(ORDER, {"id": "o-1"})
    assert schemas.decoded("OrdersOfToday", body) == Decoded("Avro", "order.avsc", {"id": "o-1"})
    assert schemas.decoded("Payments", body) is None
    wrong = schemas.decoded("Orders", b"\x99")
    assert wrong is not None
    assert (wrong.format, wrong.value, "no datum of the Avro schema" in wrong.trouble) == ("Avro", None, True)
    large = schemas.decoded("Orders", bytes(2**20 + 1))
    assert large is not None
    assert "larger than 1,048,576 bytes" in large.trouble


def test_a_proto_file_is_read_with_what_it_imports(tmp_path: Path) -> None:
    text = '[[schema]]\ntopics = "*"\nfile = "shop.proto"\nmessage = "Payment"'
    schemas = catalog(tmp_path, text, shop_proto=PROTO, lines_proto=LINES)
    found = schemas.decoded("Payments", b"\x08\x0c\x12\x05\x0a\x03tea")
    assert found == Decoded("Protobuf", "shop.proto Payment", {"cents": 12, "line": {"article": "tea"}})


def test_a_body_that_begins_with_a_number_is_read_by_the_schema_of_a_registry(tmp_path: Path) -> None:
    asked: list[str] = []
    references = [{"name": "shop.Order", "subject": "orders", "version": 3}]
    answers: dict[str, Any] = {
        "/schemas/ids/1": {"schema": json.dumps(BASKET), "references": references},
        "/subjects/orders/versions/3": {"schema": json.dumps(ORDER)},
        "/schemas/ids/2": {"schemaType": "PROTOBUF", "schema": LINES},
        "/schemas/ids/2?format=serialized": {"schemaType": "PROTOBUF", "schema": LINES},
        "/schemas/ids/3": {"schemaType": "JSON", "schema": "{}"},
        "/schemas/ids/4": {"schemaType": "THRIFT", "schema": "x"},
    }
    with schema_registry(answers, asked=asked) as address:
        secret = address.replace("http://", "http://me:secret@")
        schemas = catalog(tmp_path, f'[[schema]]\ntopics = "*"\nregistry = "{secret}"')
        basket = numbered(1, avro(ORDER, {"id": "o-1"}))
        for _ in range(3):
            assert schemas.decoded("T", basket) == Decoded("Avro", f"{address}, number 1", {"order": {"id": "o-1"}})
        line = schemas.decoded("T", numbered(2, b"\0\x0a\x03tea"))
        value = schemas.decoded("T", numbered(3, b'{"a": 1}'))
        other = schemas.decoded("T", numbered(4, b""))
        assert schemas.decoded("T", b'{"a": 1}') is None
    assert line == Decoded("Protobuf", f"{address}, number 2", {"article": "tea"})
    assert value == Decoded("JSON", f"{address}, number 3", {"a": 1})
    assert other is not None
    assert "is of THRIFT, which is not read here" in other.trouble
    assert asked.count("/schemas/ids/1") == 1


def test_a_registry_that_does_not_know_is_asked_again_after_a_while(tmp_path: Path) -> None:
    asked: list[str] = []
    answers: dict[str, Any] = {}
    clock = FakeClock()
    with schema_registry(answers, asked=asked) as address:
        (tmp_path / "schemas.toml").write_text(f'[[schema]]\ntopics = "*"\nregistry = "{address}"')
        schemas = Catalog.read(tmp_path / "schemas.toml", clock)
        body = numbered(9, avro(ORDER, {"id": "o-1"}))
        for _ in range(5):
            found = schemas.decoded("T", body)
            assert found is not None
            assert "404" in found.trouble
        assert len(asked) == 1
        answers["/schemas/ids/9"] = {"schema": json.dumps(ORDER)}
        clock.advance(seconds=31)
        assert schemas.decoded("T", body) == Decoded("Avro", f"{address}, number 9", {"id": "o-1"})


def test_a_registry_cannot_send_us_elsewhere(tmp_path: Path) -> None:
    elsewhere: list[str] = []
    answers: dict[str, Any] = {}
    with schema_registry({}, asked=elsewhere) as other, schema_registry(answers) as address:
        answers["/schemas/ids/5"] = f"{other}/stolen"
        schemas = catalog(tmp_path, f'[[schema]]\ntopics = "*"\nregistry = "{address}"')
        found = schemas.decoded("T", numbered(5, b"x"))
    assert found is not None
    assert "302" in found.trouble
    assert elsewhere == []


@pytest.mark.parametrize(("library", "extra"), [("fastavro", "avro"), ("google.protobuf", "protobuf")])
def test_a_missing_library_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, extra: str
) -> None:
    kind = {"avro": "AVRO", "protobuf": "PROTOBUF"}[extra]
    monkeypatch.setitem(sys.modules, library, None)
    reader_of_number.cache_clear()
    answer = {"schemaType": kind, "schema": '"string"'}
    with schema_registry({"/schemas/ids/6": answer, "/schemas/ids/6?format=serialized": answer}) as address:
        schemas = catalog(tmp_path, f'[[schema]]\ntopics = "*"\nregistry = "{address}"')
        found = schemas.decoded("T", numbered(6, b"x"))
    assert found is not None
    assert f"pip install 'skyrocket[{extra}]'" in found.trouble
    file = {"avro": "a.avsc", "protobuf": "a.proto"}[extra]
    message = "\nmessage = 'A'" if extra == "protobuf" else ""
    with pytest.raises(ConfigError, match=rf"\[\[schema\]\] 1: .*skyrocket\[{extra}\]"):
        catalog(tmp_path, f'[[schema]]\ntopics = "*"\nfile = "{file}"{message}', **{file.replace(".", "_"): '"string"'})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[schema]", "is not TOML"),
        ("topics = 1", r"must be a list of \[\[schema\]\]"),
        ("[[schema]]\nfile = 'a.avsc'", "topics is missing"),
        ("[[schema]]\ntopics = 'A'", "give one of file and registry"),
        ("[[schema]]\ntopics = 'A'\nfile = 'a'\nregistry = 'http://h'", "give one of file and registry"),
        ("[[schema]]\ntopics = 'A'\nregistry = 'file:///etc/passwd'", "write it as http://host:8081"),
        ("[[schema]]\ntopics = 'A'\nregistry = 'http://h'\nmessage = 'M'", "leave out message"),
        ("[[schema]]\ntopics = 'A'\nfile = 'none.avsc'", "none.avsc cannot be read"),
        ("[[schema]]\ntopics = 'A'\nfile = 'bad.avsc'", r"\[\[schema\]\] 1: the Avro schema cannot be read"),
        ("[[schema]]\ntopics = 'A'\nfile = 'ok.proto'", "needs the name of the message"),
        ("[[schema]]\ntopics = 'A'\nfile = 'ok.proto'\nmessage = 'B'", "no message B; they have A"),
        ("[[schema]]\ntopics = 'A'\nfile = 'imports.proto'\nmessage = 'A'", "imports x.proto, which is not in"),
        ("[[schema]]\ntopics = 'A'\ncolour = 'red'", "colour is not known"),
        ("[[schema]]\ntopics = 3", "topics is not known or no text"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    files = {"bad_avsc": "{", "ok_proto": "message A { }", "imports_proto": 'import "x.proto"; message A { }'}
    with pytest.raises(ConfigError, match=said):
        catalog(tmp_path, text, **files)
    with pytest.raises(ConfigError, match="cannot be read"):
        Catalog.read(tmp_path / "nothing.toml")
