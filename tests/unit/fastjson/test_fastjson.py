"""The JSON of Java peers: what is read, what is refused, what is written."""

import contextlib
import json
import math
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.errors import DataError
from skyrocket.fastjson import MAX_DEPTH, Dialect, FastJsonError, Json, ObjectKey, dumps, loads
from skyrocket.fastjson.reader import _Reader
from tests.golden_store import GOLDEN

BROADCAST = GOLDEN / "5.4.0/clean/client/rocketmq_offsets/192.0.2.2@c2/GroupBroadcast/offsets.json"
BROADCAST_BYTES = BROADCAST.read_bytes()

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
STANDARD: st.SearchStrategy[Json] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12
)
OBJECT_KEYS = st.lists(st.tuples(TEXT, SCALARS), max_size=3, unique_by=lambda pair: pair[0]).map(ObjectKey)
KEYS: st.SearchStrategy[Any] = TEXT | st.integers(-(1 << 63), (1 << 63) - 1) | OBJECT_KEYS
DIALECT: st.SearchStrategy[Json] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


# -- reading -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{0:12,1:7\n}", {0: 12, 1: 7}),
        ("{-1:2}", {-1: 2}),
        ('{"0":12}', {"0": 12}),
        ('{{"brokerName":"a","queueId":0}:12}', {ObjectKey((("brokerName", "a"), ("queueId", 0))): 12}),
        ('{{"a":[1,{"b":2}]}:1}', {ObjectKey((("a", (1, ObjectKey((("b", 2),)))),)): 1}),
        ("{'a':'it\\'s \"x\"'}", {"a": 'it\'s "x"'}),
        ("[1,2,]", [1, 2]),
        ('{"a":1,}', {"a": 1}),
        ("{name:1,other.name:2,null:3}", {"name": 1, "other.name": 2, "null": 3}),
        ("['\\x41\\v\\0\\u4E2D\\uD83D\\uDE00\\/']", ["A\v\0中😀/"]),
        ("{0:18446744073709551615,}", {0: 18446744073709551615}),
        ("{0:18446744073709551616,}", {0: 18446744073709551616.0}),
        ("{0:" + "9" * 5000 + "e-4990,}", {0: 1e10}),
        ("{0:[true,false,null,-0.5e1]}", {0: [True, False, None, -5.0]}),
        ("{0:1,0:2}", {0: 2}),
        (" \r\n\t{ 0 : [ ] } \n", {0: []}),
    ],
)
def test_the_liberties_of_java_are_read(text: str, value: Json) -> None:
    assert loads(text) == value
    assert loads(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("", 1, 1, "expected a value, found the end of the text"),
        ('{\n\t"a":1\n\t"b":2\n}', 3, 2, "expected ',' or '}', found '\"'"),
        ('{"a" 1}', 1, 6, "expected ':' after a key, found '1'"),
        ("{0:1,,}", 1, 6, "expected a key, found ','"),
        ("[1", 1, 3, "expected ',' or ']', found the end of the text"),
        ("[1] x", 1, 5, "expected the end of the text, found 'x'"),
        ("[NaN]", 1, 2, "expected a value, found 'N'"),
        ("[Infinity]", 1, 2, "expected a value, found 'I'"),
        ("[1e999]", 1, 2, "expected a finite number, found '1'"),
        ("[01]", 1, 3, "expected ',' or ']', found '1'"),
        ("[-]", 1, 2, "expected a number, found '-'"),
        ("{1.5:0}", 1, 2, "expected a whole number of 64 bits as key, found '1'"),
        ("{[1]:0}", 1, 2, "expected a key, found '['"),
        ("['a\nb']", 1, 4, "expected the closing ' of a string, found '\\n'"),
        ("['\\q']", 1, 3, "expected an escape such as \\n or \\u4E2D, found '\\\\'"),
        ("['é\\uD800']", 1, 2, 'expected surrogates in pairs, found "\'"'),
        ("[true,\nfalsy]", 2, 1, "expected a value, found 'f'"),
        ("\0\0\0\0", 1, 1, "expected a value, found '\\x00'"),
    ],
)
def test_an_error_names_line_column_and_what_was_expected(text: str, line: int, column: int, reason: str) -> None:
    with pytest.raises(FastJsonError) as caught:
        loads(text)
    assert (caught.value.line, caught.value.column, caught.value.reason) == (line, column, reason)
    assert str(caught.value) == f"line {line}, column {column}: {reason}"


def test_broken_utf8_is_told_by_its_place() -> None:
    with pytest.raises(FastJsonError) as caught:
        loads('{\n"é":"'.encode() + b'\xff"}')
    assert (caught.value.line, caught.value.column) == (2, 6)


def test_an_error_of_json_is_an_error_of_data() -> None:
    assert issubclass(FastJsonError, DataError)


@given(STANDARD)
def test_the_dialect_reader_agrees_with_orjson_on_standard_text(value: Json) -> None:
    text = json.dumps(value)
    assert _Reader(text).document() == orjson.loads(text)


@given(DIALECT, st.sampled_from(Dialect))
def test_what_is_written_is_read_back(value: Json, dialect: Dialect) -> None:
    assert loads(dumps(value, dialect)) == value


@pytest.mark.parametrize("data", [BROADCAST_BYTES, b'{"a":[1,{"b":"\xc3\xa9\\u0041"}],0:-1.5e3}'])
def test_text_cut_at_any_byte_is_refused(data: bytes) -> None:
    for end in range(len(data)):
        with pytest.raises(FastJsonError):
            loads(data[:end])


@given(st.integers(0, len(BROADCAST_BYTES) - 1), st.binary(min_size=1, max_size=3))
def test_a_changed_byte_gives_a_value_or_the_one_error(position: int, garbage: bytes) -> None:
    data = BROADCAST_BYTES[:position] + garbage + BROADCAST_BYTES[position + 1 :]
    with contextlib.suppress(FastJsonError):
        loads(data)


@given(st.binary(max_size=40) | st.text("{}[]:,'\"\\0123456789-.eE$ref\nu", max_size=40))
def test_garbage_gives_a_value_or_the_one_error(garbage: bytes | str) -> None:
    with contextlib.suppress(FastJsonError):
        loads(garbage)


@pytest.mark.parametrize("prefix", ["", "{0:"], ids=["standard", "dialect"])
def test_depth_is_bounded_in_standard_json_and_in_the_dialect(prefix: str) -> None:
    suffix = "}" if prefix else ""
    loads(prefix + nested(MAX_DEPTH - len(suffix)) + suffix)
    for depth in (MAX_DEPTH + 1, 900, 1_000_000):
        with pytest.raises(FastJsonError):
            loads(prefix + nested(depth) + suffix)
    with pytest.raises(FastJsonError):
        loads("{" * 1_000_000)


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert loads("[" + "[]," * 1000 + "[]]") == [[]] * 1001


def test_size_is_bounded() -> None:
    assert loads("[1,2]", max_bytes=5) == [1, 2]
    with pytest.raises(FastJsonError, match="6 bytes; the limit is 5"):
        loads("[1,23]", max_bytes=5)


# -- references --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":{"b":[1]},"c":{"$ref":"$.a.b"}}', {"a": {"b": [1]}, "c": [1]}),
        ('{"list":[{"x":1}],"y":{"$ref":"$.list[0]"}}', {"list": [{"x": 1}], "y": {"x": 1}}),
        ('{"t":{7:{"x":1}},"y":{"$ref":"$.t[7]"}}', {"t": {7: {"x": 1}}, "y": {"x": 1}}),
        ('{"t":{7:{"x":1}},"y":{"$ref":"$.t.7"}}', {"t": {7: {"x": 1}}, "y": {"x": 1}}),
        (r'{"%RETRY%g":{"x":1},"y":{"$ref":"$.\\%RETRY\\%g"}}', {"%RETRY%g": {"x": 1}, "y": {"x": 1}}),
        ("""{"a.b":{"x":1},"y":{"$ref":"$['a.b']"}}""", {"a.b": {"x": 1}, "y": {"x": 1}}),
        ('[{"x":1},{"$ref":"$[0]"}]', [{"x": 1}, {"x": 1}]),
        ('{"$ref":"$.a","b":1}', {"$ref": "$.a", "b": 1}),
        ('{"note":"a $ref in text"}', {"note": "a $ref in text"}),
        ('"$ref"', "$ref"),
    ],
)
def test_a_reference_becomes_what_it_means(text: str, value: Json) -> None:
    assert loads(text) == value


def test_a_reference_is_the_same_object_not_a_copy() -> None:
    value: Any = loads('{"a":{"x":1},"b":{"$ref":"$.a"}}')
    assert value["a"] is value["b"]


@pytest.mark.parametrize(
    ("reference", "levels_up"), [("@", 1), ("..", 2), ("$", 3)], ids=["this object", "its parent", "the whole"]
)
def test_a_reference_to_an_enclosing_object_makes_a_loop(reference: str, levels_up: int) -> None:
    root: Any = loads(f'{{"a":{{"b":{{"c":{{"$ref":"{reference}"}}}}}}}}')
    enclosing = [root["a"]["b"], root["a"], root]
    assert root["a"]["b"]["c"] is enclosing[levels_up - 1]
    with pytest.raises(FastJsonError, match="nested deeper"):
        dumps(root)


@pytest.mark.parametrize(
    "path", ["$.nothing", "$.a.b", "$.a[0]", "$[0]", "$.", "$x", "$[", "nonsense", "", "$.r", "$.list[9]", "$.list.x"]
)
def test_a_reference_that_leads_nowhere_becomes_an_empty_object(path: str) -> None:
    assert loads(f'{{"a":1,"list":[],"r":{{"$ref":"{path}"}}}}') == {"a": 1, "list": [], "r": {}}


def test_a_reference_alone_means_nothing() -> None:
    assert loads('{"$ref":"$"}') == {}
    assert loads('[{"$ref":".."}]') == [{}]


def test_references_to_references_are_not_followed() -> None:
    assert loads('{"a":{"$ref":"$.b"},"b":{"$ref":"$.a"}}') == {"a": {}, "b": {}}
    assert loads(json.dumps({"a": {"$ref": "$" + ".a" * 2000}})) == {"a": {}}


# -- writing -----------------------------------------------------------------------------------------

MIXED: Json = {
    "attributes": {},
    "offsets": {0: 12, 1: 7},
    "topics": ["a", "b"],
    "positions": [1, 2],
    "queues": {ObjectKey((("queueId", 2),)): 20, ObjectKey((("queueId", 1),)): 21},
    "none": [],
}

LAYOUTS = {
    Dialect.COMPACT: '{"attributes":{},"offsets":{0:12,1:7},"topics":["a","b"],"positions":[1,2],'
    '"queues":{{"queueId":2}:20,{"queueId":1}:21},"none":[]}',
    Dialect.V4_9: """{
\t"attributes":{},
\t"offsets":{0:12,1:7
\t},
\t"topics":["a","b"],
\t"positions":[1,2],
\t"queues":{{
\t\t\t"queueId":2
\t\t}:20,{
\t\t\t"queueId":1
\t\t}:21
\t},
\t"none":[]
}""",
    Dialect.V5_4: """{
\t"attributes":{
\t\t
\t},
\t"offsets":{
\t\t0:12,
\t\t1:7
\t},
\t"topics":[
\t\t"a",
\t\t"b"
\t],
\t"positions":[1,2],
\t"queues":{
\t\t{
\t\t\t"queueId":2
\t\t}:20,
\t\t{
\t\t\t"queueId":1
\t\t}:21
\t},
\t"none":[]
}""",
}


@pytest.mark.parametrize("dialect", Dialect)
def test_each_dialect_has_its_layout(dialect: Dialect) -> None:
    assert dumps(MIXED, dialect).decode() == LAYOUTS[dialect]
    assert loads(LAYOUTS[dialect]) == MIXED


@given(STANDARD, st.sampled_from([Dialect.V4_9, Dialect.V5_4]))
def test_standard_values_give_standard_json(value: Json, dialect: Dialect) -> None:
    assert json.loads(dumps(value, dialect)) == value


@pytest.mark.parametrize("dialect", Dialect)
def test_text_is_raw_utf8_with_control_characters_escaped(dialect: Dialect) -> None:
    text = dumps('中/\x01"\\\n😀', dialect)
    assert text == '"中/\\u0001\\"\\\\\\n😀"'.encode()


def test_numbers_that_json_lacks_become_null_and_half_characters_a_question_mark() -> None:
    assert dumps({0: [math.nan, math.inf], 1: "\ud800"}) == b'{0:[null,null],1:"?"}'
    assert dumps("\ud800") == b'"?"'


@pytest.mark.parametrize("value", [{"a": object()}, {(1, 2): 3}, {True: 1}, {None: 1}, 1 << 70])
@pytest.mark.parametrize("dialect", Dialect)
def test_what_is_no_json_is_not_written(value: Any, dialect: Dialect) -> None:
    with pytest.raises(FastJsonError):
        dumps(value, dialect)


@pytest.mark.parametrize("dialect", [Dialect.V4_9, Dialect.V5_4])
def test_writing_is_bounded_in_depth(dialect: Dialect) -> None:
    value: Json = []
    for _ in range(MAX_DEPTH):
        value = [value]
    with pytest.raises(FastJsonError, match="nested deeper than 100 levels"):
        dumps(value, dialect)
