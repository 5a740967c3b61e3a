"""Messages as lines of JSON, and as lines for people."""

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.cli.output.text import visible_body
from skyrocket.cli.terminal.formats import json_line, table_heading, table_row, text_line
from skyrocket.cli.terminal.json_lines import Template
from skyrocket.client.core.message import Message
from skyrocket.errors import ConfigError
from skyrocket.model.property_names import RESERVED
from tests.cluster.exactly_once.received import received

TEMPLATE = Template("Orders")


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=12)
messages = st.builds(
    Message,
    st.just("Orders"),
    st.binary(min_size=1, max_size=50),
    tags=st.none() | words,
    keys=st.lists(words, max_size=3),
    properties=st.dictionaries(words.filter(lambda name: name not in RESERVED), words, max_size=3),
    sharding_key=st.none() | words,
)


@given(messages)
def test_what_consume_writes_produce_reads(message: Message) -> None:
    again = TEMPLATE.message_of_line(json_line(received(message)).encode())
    assert (again.body, again.tags, list(again.keys)) == (message.body, message.tags, list(message.keys))
    assert (again.properties, again.sharding_key) == (message.properties, message.sharding_key)


@given(st.binary(max_size=60) | st.text(max_size=30).map(str.encode))
def test_nothing_that_commands_a_terminal_is_shown(body: bytes) -> None:
    assert visible_body(body).isprintable()


def test_lines_for_people_say_where_and_what() -> None:
    message = received(Message("Orders", "paid ✓\x1b[2J".encode(), tags="TagA", keys=["o-1", "c-7"]))
    assert text_line(message).endswith(r" broker-a:3@17 [TagA] (o-1 c-7) paid ✓\x1b[2J")
    row, heading = table_row(message, 140), table_heading(140)
    assert row.index("broker-a:3") == heading.index("queue")
    assert row.index("paid") == heading.index("body")
    assert len(table_row(received(Message("Orders", b"x" * 1000)), 140)) <= 140


def test_options_hold_for_every_line_unless_it_says_otherwise() -> None:
    template = Template("Orders", "TagA", ("k",), {"a": "1", "b": "2"}, "s", delay=5.0)
    plain = template.message_of_line(b'{"body": "x"}')
    assert (plain.tags, plain.keys, plain.sharding_key, plain.delay) == ("TagA", ("k",), "s", 5.0)
    other = template.message_of_line(
        b'{"body": {"n": 1}, "tags": "TagB", "keys": "x y", "properties": {"b": 3}, "delay_level": 2}'
    )
    assert other.body == b'{"n":1}'
    assert (other.tags, other.keys, other.properties) == ("TagB", "x y", {"a": "1", "b": "3"})
    assert (other.delay_level, other.delay) == (2, None)


def test_a_line_may_say_when_to_deliver() -> None:
    assert TEMPLATE.message_of_line(b'{"body": "x", "delay": "10m"}').delay == timedelta(minutes=10).total_seconds()
    at = TEMPLATE.message_of_line(b'{"body": "x", "deliver_at": "2026-01-31T12:00:00+00:00"}').deliver_at
    assert at is not None
    assert at.timestamp() == 1769860800


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("paid", "it is not JSON"),
        ("[1]", "it is list, not an object"),
        ("{}", "it has neither body nor body_base64"),
        ('{"body": "x", "tag": "A"}', "'tag' is not a field of a message; the fields are body, body_base64, delay"),
        ('{"body_base64": "?"}', "body_base64 is not Base64"),
        ('{"body": "x", "tags": 5}', "tags is 5: give text"),
        ('{"body": "x", "keys": [1]}', "keys is 1: give text"),
        ('{"body": "x", "properties": []}', r"properties is \[\]: give an object"),
        ('{"body": "x", "delay": "soon"}', "'soon' is not a length of time"),
        ('{"body": "x", "delay_level": "2"}', "delay_level is '2'"),
    ],
)
def test_a_bad_line_is_refused_with_its_reason(line: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        TEMPLATE.message_of_line(line.encode())


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda each: (
            st.lists(each)
            | st.dictionaries(
                st.sampled_from(
                    ["body", "tags", "keys", "properties", "delay", "delay_level", "deliver_at", "body_base64"]
                ),
                each,
            )
        ),
    )
)
def test_whatever_json_comes_only_its_own_error_is_raised(value: Any) -> None:
    try:
        message = TEMPLATE.message_of_line(json.dumps(value).encode())
    except ConfigError:
        return
    assert isinstance(message.body, bytes)
