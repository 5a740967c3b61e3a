"""The option `namespace` of format("rocketmq"): users have names without it, brokers those with it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from skyrocket.client import Message
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline import read_stream
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.topic_source.settings import TopicSettings, read_settings
from skyrocket.pipeline.topic_source.stream import initial_offsets_location
from skyrocket.testing import LocalCluster
from tests.pipeline.topics import filled, numbers, read_all, rows_of, stream_reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = ReadAllAvailable()
COUNT = 20
FIRST = {"": 0, "A": 100, "B": 200}  # the first number in topic Orders of each namespace


# ── options alone ────────────────────────────────────────────────────────────────────────────────────────────────────


def told(**options: str) -> TopicSettings:
    given = {"namesrvAddr": "127.0.0.1:1", "namespace": "A", "subscribe": "T"} | options
    return read_settings({name: value for name, value in given.items() if value}, streaming=False)


def test_names_of_options_get_the_namespace_once() -> None:
    found = told(subscribe="T, A%T, B%T, %RETRY%g, %DLQ%A%g, RMQ_SYS_TRACE_TOPIC", consumerGroup="g")
    topics = ("A%T", "A%B%T", "%RETRY%A%g", "%DLQ%A%g", "RMQ_SYS_TRACE_TOPIC")
    assert (found.subscribed.topics, found.group) == (topics, "A%g")
    assert told().group == ""  # nobody's name, and not "A%"
    assert told(namespace="", consumerGroup="g").group == "g"


def test_queues_offsets_and_times_in_json_get_the_namespace() -> None:
    of_queue = '{"T": {"a": {"0": 7}}}'
    found = told(subscribe="", assign='{"T": {"a": [0]}}', startingOffsets=of_queue, endingOffsetsByTimestamp=of_queue)
    queue = MessageQueue("A%T", "a", 0)
    assert found.subscribed.queues == (queue,)
    assert found.start.numbers == found.end.numbers == {queue: 7}
    assert told(startingOffsets='{"A%T": {"a": {"0": 7}}}').start.numbers == {queue: 7}, "as progress shows it"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"namespace": "A%"}, "the % behind it is not part of it"),
        ({"namespace": "A.B"}, "only letters, digits"),
        ({"nameSpaces": "A"}, 'has no option "nameSpaces"; did you mean "namespace"'),
    ],
)
def test_a_wrong_namespace_is_told(options: dict[str, str], what: str) -> None:
    with pytest.raises(OptionError, match=what):
        told(**options)


def test_an_address_that_names_an_instance_gives_the_namespace_as_for_our_client() -> None:
    address = "http://MQ_INST_123_abc.mq.example:80"
    assert told(namespace="", namesrvAddr=address).subscribed.topics == ("MQ_INST_123_abc%T",)


def test_streams_of_two_namespaces_have_beginnings_of_their_own(tmp_path: Path) -> None:
    plain, of_a, of_b = (
        initial_offsets_location(str(tmp_path), {"subscribe": "T", **({"namespace": name} if name else {})})
        for name in FIRST
    )
    assert len({plain, of_a, of_b}) == 3
    assert Path(plain).name == "4f92cf05889d.json", "a stream without a namespace finds the file of before"


# ── brokers in this process ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def mq() -> Iterator[LocalCluster]:
    """Topic Orders without a namespace and in two of them."""
    with LocalCluster(settings={"enablePropertyFilter": True}) as cluster:
        for name, first in FIRST.items():
            cluster.create_topic(full(name), queues=2)
            filled(cluster, full(name), COUNT, first=first)
        yield cluster


def full(namespace: str, topic: str = "Orders") -> str:
    return f"{namespace}%{topic}" if namespace else topic


@pytest.mark.parametrize("namespace", FIRST)
def test_a_batch_has_the_messages_of_its_namespace_under_names_without_it(mq: LocalCluster, namespace: str) -> None:
    first = FIRST[namespace]
    rows = read_all(mq, subscribe="Orders", namespace=namespace)
    assert numbers(rows) == list(range(first, first + COUNT))
    assert {row["topic"] for row in rows} == {"Orders"}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"tags": "odd"}, range(101, 120, 2)),
        ({"sqlFilter": "n < 105"}, range(100, 105)),
        ({"keys": "k107,k7"}, [107]),
        ({"startingTimestamp": 0}, range(100, 120)),
    ],
)
def test_filters_and_times_mean_the_topic_of_the_namespace(
    mq: LocalCluster, options: dict[str, Any], wanted: range | list[int]
) -> None:
    for columns in (None, ["body"]):  # with and without the column of the name
        assert numbers(read_all(mq, columns, subscribe="Orders", namespace="A", **options)) == list(wanted)


def test_a_pattern_sees_the_names_of_its_namespace_alone(mq: LocalCluster) -> None:
    mq.create_topic("A%Orders2", queues=1)
    filled(mq, "A%Orders2", 1, first=120)
    rows = read_all(mq, subscribePattern="O.*s2?", namespace="A")
    assert numbers(rows) == list(range(100, 121))
    assert {row["topic"] for row in rows} == {"Orders", "Orders2"}
    assert numbers(read_all(mq, subscribePattern="A%.*s", namespace="B")) == []
    assert {row["topic"] for row in read_all(mq, subscribePattern="B%.*")} == {"B%Orders"}  # without the option as ever


def test_queues_and_offsets_are_named_without_the_namespace(mq: LocalCluster) -> None:
    (broker,) = {row["brokerName"] for row in read_all(mq, ["brokerName"], subscribe="Orders")}
    start = json.dumps({"Orders": {broker: {"1": 4}}})
    rows = read_all(mq, assign=json.dumps({"Orders": {broker: [1]}}), startingOffsets=start, namespace="B")
    stored = [int(message.body) for message in mq.messages("B%Orders") if message.queue_id == 1]
    assert [int(row["body"]) for row in rows] == stored[4:]
    assert {(row["topic"], row["queueId"]) for row in rows} == {("Orders", 1)}


def test_retries_of_a_group_are_found_behind_their_prefix(mq: LocalCluster) -> None:
    mq.create_group("A%late")
    with mq.producer() as producer:
        producer.send(Message("%RETRY%A%late", b"7"))
    (row,) = read_all(mq, subscribe="%RETRY%late", namespace="A")
    assert (row["topic"], row["body"]) == ("%RETRY%late", b"7")


def test_offsets_of_a_stream_have_full_names_and_so_has_the_group_whose_progress_is_told(mq: LocalCluster) -> None:
    reader = stream_reader(mq, subscribe="Orders", namespace="A", consumerGroup="readers")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    rows = rows_of(reader, reader.partitions(start, end))
    assert numbers(rows) == list(range(100, 120))
    assert {row["topic"] for row in rows} == {"Orders"}
    assert list(start) == list(end) == ["A%Orders"]
    reader.latestOffset(end, ALL)  # the batch has ended
    committed = mq.offsets("A%readers")
    assert {queue.topic for queue in committed} == {"A%Orders"}
    assert sum(committed.values()) == COUNT
    assert not mq.offsets("readers")
    rows = read_all(mq, subscribe="Orders", namespace="A", consumerGroup="readers", startingOffsets="group")
    assert rows == []


@pytest.mark.parametrize("how", ["subscribe", "subscribePattern"])
def test_a_checkpoint_of_one_namespace_says_nothing_about_another(mq: LocalCluster, how: str) -> None:
    topic = mq.unique_topic("A%moved").removeprefix("A%")
    mq.create_topic(f"B%{topic}", queues=2)
    filled(mq, f"A%{topic}", 5)
    filled(mq, f"B%{topic}", 2, first=10)
    before = stream_reader(mq, namespace="A", **{how: topic})
    of_a = before.latestOffset(before.initialOffset(), ALL)
    filled(mq, f"A%{topic}", 1, first=5)
    reader = stream_reader(mq, namespace="B", **{how: topic})
    end = reader.latestOffset(of_a, ALL)
    assert numbers(rows_of(reader, reader.partitions(of_a, end))) == [10, 11]


# ── Spark ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_namespace_is_given_it_gives_back(
    spark: "SparkSession", mq: LocalCluster, tmp_path: Path, checkpoint: str
) -> None:
    for namespace in FIRST:
        mq.create_topic(full(namespace, "Round"), queues=2)
    for namespace in ("A", "B", ""):  # one job, one folder of records: each namespace gets its rows
        frame = spark.sql(f"SELECT concat('{namespace} ', id) AS body, 'Round' AS topic FROM range(0, 3, 1, 1)")
        options = {"namesrvAddr": mq.name_server_address, "namespace": namespace}
        job = {"jobId": "nightly", "checkpointLocation": str(tmp_path / "jobs")}
        frame.write.format("rocketmq").options(**options, **job).mode("append").save()
    for namespace in FIRST:
        assert sorted(message.body.decode() for message in mq.messages(full(namespace, "Round"))) == [
            f"{namespace} {number}" for number in range(3)
        ]
    of_a = {"namesrvAddr": mq.name_server_address, "namespace": "A"}
    mq.create_topic("A%Copies", queues=1)
    stream = read_stream(
        spark, checkpoint=checkpoint, subscribe="Round", startingOffsets="earliest", consumerGroup="copying", **of_a
    )
    writer = stream.select("topic", "body").selectExpr("concat(topic, ' ', string(body)) AS body").writeStream
    writer = writer.format("rocketmq").options(topic="Copies", **of_a).option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(200)
    assert sorted(message.body.decode() for message in mq.messages("A%Copies")) == [f"Round A {n}" for n in range(3)]
    assert sum(mq.offsets("A%copying").values()) == 3
    (record,) = Path(checkpoint).rglob("*.committed")
    assert {queue["topic"] for queue in json.loads(record.read_text())["queues"]} == {"A%Copies"}
    rows = spark.read.format("rocketmq").options(subscribePattern="Cop.*", **of_a).load().select("topic").collect()
    assert [row.topic for row in rows] == ["Copies"] * 3
