"""Rows into batch requests, without Spark and without a broker."""

import datetime
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as t

from skyrocket.client.sending.queue_selector import index_by_hash
from skyrocket.format.batch import decode_batch
from skyrocket.format.properties import decode_properties
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.topic_sink.identity import Scope, id_of
from skyrocket.pipeline.topic_sink.input_columns import InputColumns, InputError, input_columns
from skyrocket.pipeline.topic_sink.requests import ANY_QUEUE, Addressed, queue_indices, requests
from skyrocket.pipeline.topic_sink.rows import RowNumbers, TopicRows, rows_of_topics
from skyrocket.pipeline.topic_sink.settings import SinkSettings, sink_settings
from skyrocket.pipeline.topic_sink.spreading import Spread
from skyrocket.pipeline.topic_sink.stored_ids import StoredIds
from skyrocket.pipeline.topic_source.cluster import Cluster

NUMBERS = RowNumbers(3, 100)
SETTINGS = SinkSettings(Cluster("127.0.0.1:9876"), "Orders", max_message_size=1 << 20)
SCOPE = Scope("query", "7", "Orders")
ARROW = {
    "body": pa.string(),
    "topic": pa.string(),
    "tags": pa.string(),
    "keys": pa.list_(pa.string()),
    "properties": pa.map_(pa.string(), pa.string()),
    "queueId": pa.int32(),
    "shardingKey": pa.string(),
    "delayLevel": pa.int32(),
    "deliverTimestamp": pa.timestamp("us", "UTC"),
    "messageId": pa.string(),
}


def batch_of(**columns: list[Any]) -> tuple[pa.RecordBatch, InputColumns]:
    arrays = [pa.array(values, ARROW[name]) for name, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, list(columns)), InputColumns({name: name for name in columns})


def rows_of(settings: SinkSettings = SETTINGS, **columns: list[Any]) -> list[TopicRows]:
    return rows_of_topics(*batch_of(**columns), settings, NUMBERS)


def encoded(rows: TopicRows, queues: int = 4, most_bytes: int = 1000) -> list[Addressed]:
    chosen = queue_indices(rows, list(range(queues)), 3)
    return requests(rows, SCOPE.ids(rows.contents()), chosen, most_bytes)


def test_every_column_becomes_what_consumers_read() -> None:
    (rows,) = rows_of(
        body=["paid", "äöü"],
        tags=["TagA", None],
        keys=[["o-1", "c-2"], []],
        properties=[{"a": "b", "c": "d e"}, None],
        shardingKey=["o-1", None],
    )
    made = encoded(rows)
    elements = {element.body: element for part in made for element in decode_batch(bytes(part.request.body))}
    first = decode_properties(elements[b"paid"].properties)
    key = first.pop("UNIQ_KEY")
    assert first == {
        "WAIT": "true",
        "TAGS": "TagA",
        "KEYS": "o-1 c-2",
        "__SHARDINGKEY": "o-1",
        "a": "b",
        "c": "d e",
    }
    assert id_of(key) in [part.request.ids.tobytes() for part in made]
    second = decode_properties(elements["äöü".encode()].properties)
    assert set(second) == {"UNIQ_KEY", "WAIT"}


TEXT = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=12)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "body": st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
            "tags": st.none() | TEXT,
            "keys": st.none() | TEXT,
            "shardingKey": st.none() | st.sampled_from(["a", "b", "c", "order-1001"]),
            "properties": st.none()
            | st.dictionaries(st.sampled_from(["p", "q", "größe"]), TEXT.filter(lambda text: text.strip() != "")),
        }
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(1, 400))
def test_any_rows_are_in_requests_as_they_were_in_order_for_each_queue(given: list[dict[str, Any]], most: int) -> None:
    columns = {name: [row[name] for row in given] for name in given[0]}
    kinds = {**ARROW, "keys": pa.string()}
    arrays = [pa.array(values, kinds[name]) for name, values in columns.items()]
    batch = pa.RecordBatch.from_arrays(arrays, list(columns))
    (rows,) = rows_of_topics(batch, InputColumns({name: name for name in columns}), SETTINGS, NUMBERS)
    seen: dict[int, list[tuple[str, dict[str, str]]]] = {}
    for queue, request in encoded(rows, 4, most):
        elements = decode_batch(bytes(request.body))
        assert len(elements) == len(request)
        assert len(request.body) <= most or len(elements) == 1
        for element in elements:
            told = decode_properties(element.properties)
            seen.setdefault(queue, []).append((element.body.decode(), told))
    expected: dict[int, list[tuple[str, dict[str, str]]]] = {}
    for row in given:
        queue = ANY_QUEUE if row["shardingKey"] is None else index_by_hash(row["shardingKey"], 4)
        told = {"WAIT": "true"}
        told |= {"TAGS": row["tags"]} if row["tags"] and row["tags"].strip() else {}
        told |= {"KEYS": row["keys"]} if row["keys"] and row["keys"].strip() else {}
        told |= {"__SHARDINGKEY": row["shardingKey"]} if row["shardingKey"] else {}
        expected.setdefault(queue, []).append((row["body"], told | (row["properties"] or {})))
    for told_rows in seen.values():
        for _, told in told_rows:
            del told["UNIQ_KEY"]
    assert seen == expected


@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=8),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 6)),
    first=st.integers(0, 100),
)
def test_free_rows_are_as_many_in_each_queue_and_broker_whatever_the_batches(
    sizes: list[int], shape: tuple[int, int], first: int
) -> None:
    brokers, queues = shape
    each = [MessageQueue("Orders", f"broker-{n}", queue) for n in range(brokers) for queue in range(queues)]
    spread = Spread(each, first)
    chosen = [index for size in sizes for index in spread.chosen(np.full(size, ANY_QUEUE, np.int64)).tolist()]
    of_queue = Counter(dict.fromkeys(range(len(each)), 0)) + Counter(chosen)
    assert not chosen or max(of_queue.values()) - min(of_queue[index] for index in range(len(each))) <= 1
    of_broker = Counter(each[index].broker_name for index in chosen)
    assert not chosen or max(of_broker.values()) - min(of_broker[queue.broker_name] for queue in each) <= 1


def test_a_run_of_neighbours_goes_to_one_queue_and_rows_with_a_place_keep_it() -> None:
    spread = Spread([MessageQueue("Orders", "broker-a", queue) for queue in range(2)], first=1)
    given = np.array([ANY_QUEUE, 0, ANY_QUEUE, ANY_QUEUE, 1, ANY_QUEUE], np.int64)
    assert spread.chosen(given).tolist() == [1, 0, 1, 0, 1, 0]


def test_a_request_less_what_is_stored_has_the_other_rows() -> None:
    (rows,) = rows_of(body=["a", "bb", "ccc", "dddd"])
    ((_, request),) = encoded(rows)
    left = request.without(np.array([True, False, True, False]))
    assert [element.body for element in decode_batch(bytes(left.body))] == [b"bb", b"dddd"]
    assert left.ids.tobytes() == request.ids[[1, 3]].tobytes()
    again = left.without(np.array([True, False]))
    assert [element.body for element in decode_batch(bytes(again.body))] == [b"dddd"]


def test_ids_depend_on_content_and_batch_and_not_on_the_place() -> None:
    (rows,) = rows_of(body=["a", "b", "a"], tags=["x", None, "x"])
    ids = SCOPE.ids(rows.contents())
    assert ids[0] == ids[2] != ids[1]
    (moved,) = rows_of_topics(*batch_of(body=["b", "a"], tags=[None, "x"]), SETTINGS, RowNumbers(0, 0))
    assert SCOPE.ids(moved.contents()).tolist() == [ids[1], ids[0]]
    assert Scope("query", "8", "Orders").ids(rows.contents())[0] != ids[0]
    (named,) = rows_of(body=["now 1", "now 2"], messageId=["m", "m"])
    same = SCOPE.ids(named.contents())
    assert same[0] == same[1]


def test_no_rows_are_no_requests() -> None:
    (rows,) = rows_of(body=[], tags=[], keys=[], properties=[], shardingKey=[], queueId=[], deliverTimestamp=[])
    assert encoded(rows) == []


def test_a_stored_message_stands_for_one_row() -> None:
    (rows,) = rows_of(body=["a", "b", "c"])
    a, b, c = SCOPE.ids(rows.contents())
    stored = StoredIds(np.array([a, b, a]))
    assert stored.claim(np.array([a, c, a, a, b, b])).tolist() == [True, False, True, False, True, False]
    assert len(stored) == 0
    assert StoredIds(np.array([], "S12")).claim(np.array([a])).tolist() == [False]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"body": ["a", None]}, "row 101 of partition 3 has no body"),
        ({"body": ["a", "b", ""]}, "row 102 of partition 3 has an empty body"),
        ({"body": ["a", "x" * 2000]}, "row 101 of partition 3 has a body of 2000 bytes; maxMessageSize is 1000"),
        ({"body": ["a"], "tags": ["a\x01b"]}, "row 100 of partition 3 has 0x01 or 0x02 in TAGS"),
        ({"body": ["a"], "properties": [{"TAGS": "x"}]}, "property 'TAGS' which RocketMQ itself uses"),
        (
            {"body": ["a", "b"], "properties": [{}, {"p": " "}]},
            "row 101 of partition 3 has the property 'p' with a blank",
        ),
        ({"body": ["a"], "properties": [{"p": None}]}, "property 'p' without a value"),
        ({"body": ["a"], "keys": [["k" * 40_000]]}, "bytes of tags, keys and properties"),
        ({"body": ["a"], "delayLevel": [-1]}, "negative delayLevel"),
        ({"body": ["a"], "messageId": [None]}, 'has no "messageId"'),
        ({"body": ["a"], "queueId": [-2]}, "negative queueId"),
        (
            {
                "body": ["a"],
                "delayLevel": [1],
                "deliverTimestamp": [datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)],
            },
            "both delayLevel and deliverTimestamp",
        ),
    ],
)
def test_a_row_that_cannot_be_sent_is_named(columns: dict[str, list[Any]], problem: str) -> None:
    with pytest.raises(InputError) as refused:
        rows_of(replace(SETTINGS, max_message_size=1000), **columns)
    assert problem in str(refused.value)


def test_reserved_properties_can_be_dropped() -> None:
    given = [{"TAGS": "x", "mine": "1"}, {"UNIQ_KEY": "u"}, None, {"mine": "2", "KEYS": "k", "other": "3"}]
    (rows,) = rows_of(replace(SETTINGS, drops_reserved=True), body=["a", "b", "c", "d"], properties=given)
    texts = [decode_properties(text) for text in rows.properties.to_pylist()]
    assert texts == [{"mine": "1"}, {}, {}, {"mine": "2", "other": "3"}]


def test_rows_go_apart_by_topic_and_keep_their_numbers() -> None:
    first, second = rows_of(replace(SETTINGS, topic=None), body=["a", "b", "c"], topic=["T", "U", "T"])
    assert (first.topic, first.body.to_pylist(), first.numbers.tolist()) == ("T", [b"a", b"c"], [100, 102])
    assert (second.topic, second.body.to_pylist(), second.numbers.tolist()) == ("U", [b"b"], [101])
    with pytest.raises(InputError, match="row 101 of partition 3 has no topic"):
        rows_of(replace(SETTINGS, topic=None), body=["a", "b"], topic=["T", None])


def test_a_queue_that_the_topic_does_not_have_is_named() -> None:
    (rows,) = rows_of(body=["a", "b"], queueId=[1, 9])
    with pytest.raises(InputError, match=r"row 101 of partition 3 has queueId 9; topic Orders has the queues \[0, 1\]"):
        queue_indices(rows, [0, 1, 0, 1], 3)
    (rows,) = rows_of(body=["a", "b"], queueId=[1, None], shardingKey=[None, "order-1001"])
    assert queue_indices(rows, [0, 1, 2, 3], 3).tolist() == [1, 3]


def spark_schema(**columns: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in columns.items()])


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"body": t.StringType(), "tag": t.StringType()}, 'no column "tag"; did you mean "tags"?'),
        ({"body": t.StringType(), "deliverAt": t.LongType()}, 'did you mean "deliverTimestamp"?'),
        ({"body": t.StringType(), "brokerName": t.StringType()}, "tells where a message was read"),
        ({"tags": t.StringType()}, 'no column "body" (or "value"), its columns are: tags'),
        ({"body": t.StringType(), "value": t.StringType()}, 'both "body" and "value"'),
        ({"body": t.LongType()}, "is BIGINT, the sink needs STRING or BINARY: cast it, as in CAST(body AS STRING)"),
        ({"body": t.StringType(), "keys": t.ArrayType(t.LongType())}, "the sink needs STRING or ARRAY<STRING>"),
        ({"body": t.StringType(), "properties": t.StringType()}, "the sink needs MAP<STRING, STRING>"),
        ({"body": t.StringType(), "deliverTimestamp": t.DateType()}, "TIMESTAMP, or BIGINT with ms since 1970"),
    ],
)
def test_columns_that_cannot_be_meant_are_refused_before_anything_is_sent(
    columns: dict[str, t.DataType], problem: str
) -> None:
    with pytest.raises(InputError) as refused:
        input_columns(spark_schema(**columns), "Orders")
    assert problem in str(refused.value)


def test_without_a_topic_anywhere_the_two_ways_to_give_one_are_named() -> None:
    with pytest.raises(InputError, match="nothing says where to send"):
        input_columns(spark_schema(body=t.StringType()), None)
    assert input_columns(spark_schema(VALUE=t.BinaryType(), topic=t.StringType()), None).names["body"] == "VALUE"


GIVEN = {"namesrvAddr": "127.0.0.1:9876", "topic": "Orders"}


@pytest.mark.parametrize(
    ("options", "is_stream", "problem"),
    [
        ({"topik": "x"}, False, 'did you mean "topic"?'),
        ({"deliveryGuarantee": "twice"}, False, "it is one of idempotent, at-least-once, exactly-once"),
        (
            {"deliveryGuarantee": "exactly-once"},
            False,
            'df.write needs the options "jobId" and "checkpointLocation"',
        ),
        ({"deliveryGuarantee": "exactly-once"}, True, "is missing: exactly-once writing keeps its records there"),
        ({}, True, '"checkpointLocation" of format "rocketmq" is missing'),
        ({"jobId": "x"}, False, '"checkpointLocation" belong together'),
        ({"jobId": "x", "checkpointLocation": "/tmp/x"}, True, "is for df.write"),
        ({"jobId": "x/y", "checkpointLocation": "/tmp/x"}, False, 'must not contain "/"'),
        ({"accessKey": "x"}, False, "accessKey and secretKey belong together"),
        ({"maxBatchBytes": "3m"}, False, "brokers take at most 2m"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, str], is_stream: bool, problem: str) -> None:
    with pytest.raises(OptionError) as refused:
        sink_settings(GIVEN | options, is_stream=is_stream)
    assert problem in str(refused.value)
