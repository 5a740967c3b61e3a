"""Check points and acknowledgements, as RocketMQ writes and reads them."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.errors import DataError
from skyrocket.format.revive_log import (
    MAX_MESSAGES,
    Acknowledgement,
    CheckPoint,
    CheckPointKey,
    decode_acknowledgement,
    decode_check_point,
)
from tests.golden_store import GoldenStore

KEY = CheckPointKey("Orders", "Shop", 3, 100, 1_700_000_000_000, "broker-a")

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
numbers = st.integers(0, (1 << 63) - 1)
keys = st.builds(CheckPointKey, names, names, st.integers(0, 1023), numbers, numbers, names)
distances = st.lists(st.integers(0, 1000), min_size=1, max_size=MAX_MESSAGES, unique=True).map(
    lambda found: tuple(sorted(found))
)


def test_what_rocketmq_wrote_is_read_and_written_again_byte_for_byte() -> None:
    golden = GoldenStore("5.4.0", "clean")
    tags = []
    for record in golden.messages():
        if record.get("topic") != "rmq_sys_REVIVE_LOG_DefaultCluster":
            continue
        tag = record["properties"]["TAGS"]
        body = base64.b64decode(record["body"])
        decode = decode_check_point if tag == "ck" else decode_acknowledgement
        again = decode(body)
        assert again.encode() == body
        assert again.unique_key() == record["properties"]["UNIQ_KEY"]
        tags.append(tag)
    assert set(tags) == {"ck", "ack"}
    assert len(tags) > 30


@given(keys, numbers, distances, st.integers(0, (1 << MAX_MESSAGES) - 1), st.none() | st.integers(0, 99))
def test_a_check_point_comes_back_as_it_was(
    key: CheckPointKey, invisible_ms: int, found: tuple[int, ...], acked: int, again: int | None
) -> None:
    point = CheckPoint(key, invisible_ms, found, acked, again)
    assert decode_check_point(point.encode()) == point


@given(keys, st.lists(numbers, min_size=1, max_size=40), st.booleans())
def test_an_acknowledgement_comes_back_as_it_was(key: CheckPointKey, offsets: list[int], is_batch: bool) -> None:
    ack = Acknowledgement(key, offsets if is_batch else tuple(offsets[:1]), is_batch)
    assert decode_acknowledgement(ack.encode()) == ack


def test_messages_without_acknowledgement_are_those_without_a_bit() -> None:
    point = CheckPoint(KEY, 5000, (0, 2, 7))
    assert point.acknowledge(102)
    assert not point.acknowledge(101), "the filter had left this one out"
    assert point.unacknowledged() == [100, 107]


def test_an_old_check_point_without_distances_has_neighbouring_messages() -> None:
    fields = json.loads(CheckPoint(KEY, 5000, (0,)).encode())
    del fields["d"]
    fields["n"] = 3
    assert decode_check_point(json.dumps(fields).encode()).unacknowledged() == [100, 101, 102]


def test_the_sign_bit_of_a_java_bit_map_is_a_bit() -> None:
    fields = json.loads(CheckPoint(KEY, 5000, tuple(range(32))).encode())
    fields["bm"] = -1
    assert decode_check_point(json.dumps(fields).encode()).unacknowledged() == []


def test_acknowledgements_with_long_names_are_read_too() -> None:
    body = {"ackOffset": 101, "startOffset": 100, "consumerGroup": "Shop", "topic": "Orders", "queueId": 3}
    long_names = json.dumps({**body, "popTime": KEY.pop_time, "brokerName": "broker-a"}).encode()
    assert decode_acknowledgement(long_names) == Acknowledgement(KEY, (101,))


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"t":"x"}', b"\xff", b'{"t":"x","c":"y","q":1,"so":0,"pt":"z"}'])
def test_what_is_neither_is_refused(body: bytes) -> None:
    with pytest.raises(DataError):
        decode_check_point(body)
    with pytest.raises(DataError):
        decode_acknowledgement(body)
