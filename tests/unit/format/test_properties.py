"""The property string: RocketMQ's own, every variant, and work on it without decoding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.errors import MessageRefused
from skyrocket.format.properties import (
    decode_properties,
    encode_properties,
    find_property,
    whole_number,
    with_property,
    without_property,
)
from tests.golden_store import Line
from tests.unit.format.samples import TEXT

# Texts rich in separators, repeated names and empty parts.
MESSY = st.lists(st.sampled_from([b"\x01", b"\x02", b"A", b"AB", b"B", b"KEYS", b"\xe4", "é😀".encode()])).map(b"".join)
NAMES = st.sampled_from(["A", "B", "AB", "KEYS", "é😀"])
FULL = st.dictionaries(TEXT.filter(bool), TEXT.filter(bool), max_size=6)


def test_golden_property_texts_decode_as_rocketmq_decodes_them(golden_lines: list[Line]) -> None:
    for line in golden_lines:
        if line["kind"] == "message" and not line.get("afterRecoveredEnd"):
            encoded = line["propertiesString"].encode()
            assert decode_properties(encoded) == line["properties"]
            for name, value in line["properties"].items():
                assert find_property(encoded, name.encode()) == value.encode()


@pytest.mark.parametrize(
    ("encoded", "properties"),
    [
        (b"", {}),
        (b"A\x011\x02", {"A": "1"}),
        (b"A\x011", {"A": "1"}),
        (b"A\x011\x02B\x012", {"A": "1", "B": "2"}),
        (b"A\x011\x02A\x012\x02", {"A": "2"}),
        (b"A\x01\x02B\x012\x02", {"B": "2"}),
        (b"A\x011\x02A\x01\x02", {"A": "1"}),
        (b"\x01value\x02", {}),
        (b"name only\x02", {}),
        (b"\x02\x02A\x011\x02\x02", {"A": "1"}),
        (b"A\x011\x012\x02", {"A": "1\x012"}),
    ],
    ids=[
        "empty",
        "ended",
        "last-separator-left-out",
        "two",
        "last-one-counts",
        "empty-value-vanishes",
        "empty-value-does-not-hide-an-earlier-one",
        "no-name",
        "no-separator",
        "empty-segments",
        "value-from-the-first-separator-on",
    ],
)
def test_every_variant_is_read(encoded: bytes, properties: dict[str, str]) -> None:
    assert decode_properties(encoded) == properties
    for name in ("A", "B", "name only", "value"):
        value = find_property(encoded, name.encode())
        assert (value.decode() if value else None) == properties.get(name)


@given(FULL, st.booleans())
def test_properties_come_back_with_and_without_the_last_separator(properties: dict[str, str], ended: bool) -> None:
    encoded = encode_properties(properties, trailing_separator=ended)
    assert decode_properties(encoded) == properties
    assert encoded.endswith(b"\x02") is (ended and bool(properties))


@pytest.mark.parametrize(("name", "value"), [("a\x01", "b"), ("a\x02", "b"), ("a", "\x01b"), ("a", "b\x02")])
def test_separators_in_names_and_values_are_refused(name: str, value: str) -> None:
    with pytest.raises(MessageRefused, match="0x01 or 0x02"):
        encode_properties({name: value})


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(MessageRefused, match="surrogate"):
        encode_properties({"emoji": "\ud83d"})


def test_at_most_32767_bytes_are_encoded() -> None:
    assert len(encode_properties({"n": "é" * 16382})) == 32767
    with pytest.raises(MessageRefused, match="32768 bytes; the limit is 32767"):
        encode_properties({"n": "é" * 16382 + "x"})


@given(MESSY, NAMES)
def test_finding_one_property_agrees_with_decoding_all(encoded: bytes, name: str) -> None:
    value = find_property(encoded, name.encode())
    assert (None if value is None else value.decode("utf-8", "replace")) == decode_properties(encoded).get(name)


@given(MESSY, NAMES)
def test_removing_a_property_leaves_all_others(encoded: bytes, name: str) -> None:
    properties = decode_properties(encoded)
    properties.pop(name, None)
    without = without_property(encoded, name.encode())
    assert decode_properties(without) == properties
    assert without_property(without, name.encode()) == without


@given(MESSY, NAMES, TEXT.filter(bool))
def test_adding_a_property_leaves_all_others(encoded: bytes, name: str, value: str) -> None:
    added = with_property(encoded, name.encode(), value.encode())
    assert decode_properties(added) == decode_properties(encoded) | {name: value}
    assert added.startswith(encoded)


@given(st.binary(max_size=200))
def test_random_bytes_decode_to_some_map(encoded: bytes) -> None:
    assert all(name and value for name, value in decode_properties(encoded).items())


def test_a_name_is_matched_whole() -> None:
    encoded = b"XKEYS\x011\x02note\x01KEYS\x02KEYSX\x013\x02"
    assert find_property(encoded, b"KEYS") is None
    assert without_property(encoded, b"KEYS") == encoded


@pytest.mark.parametrize(
    ("text", "number"),
    [(b"0", 0), (b"007", 7), (b"9" * 18, 10**18 - 1)]
    + [(text, None) for text in (None, b"", b"-1", b"+1", b" 1", b"x", "²".encode(), b"1" * 19, b"1" * 5000)],
)
def test_a_number_that_a_client_wrote_is_read_or_is_none(text: bytes | None, number: int | None) -> None:
    assert whole_number(text) == number
