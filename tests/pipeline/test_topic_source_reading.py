"""The topic source against brokers in this process, without a JVM: what is read, and what is told when it cannot be."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from skyrocket.client import Message
from skyrocket.client.consumer.queue_ranges import Piece, QueueRange, RangeUnreadable
from skyrocket.client.core.errors import NoRoute
from skyrocket.columns.schema import arrow_schema
from skyrocket.errors import CorruptRecord
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.topic_source.connection import connected, run
from skyrocket.pipeline.topic_source.loss import DataLost
from skyrocket.pipeline.topic_source.reading import decoded, rules_of
from skyrocket.pipeline.topic_source.settings import read_settings
from skyrocket.testing import LocalCluster
from tests.pipeline.topics import batch_reader, filled, numbers, options_for, read_all, rows_of

COUNT = 300


@pytest.fixture(scope="module")
def mq() -> Iterator[LocalCluster]:
    """Two brokers, topic T with four queues on each; nobody changes what is in it."""
    with LocalCluster(brokers=2, settings={"enablePropertyFilter": True}) as cluster:
        cluster.create_topic("T", queues=4)
        filled(cluster, "T", COUNT)
        yield cluster


def test_a_batch_has_every_message_once_as_a_consumer_would_see_it(mq: LocalCluster) -> None:
    rows = read_all(mq, subscribe="T")
    stored = {(m.broker_name, m.queue_id, m.queue_offset): m for m in mq.messages("T")}
    assert len(rows) == len(stored) == COUNT
    for row in rows:
        message = stored[row["brokerName"], row["queueId"], row["queueOffset"]]
        assert row["body"] == message.body
        assert row["topic"] == "T"
        assert row["tags"] == message.tags
        assert row["keys"].split(" ") == list(message.keys)
        assert row["uniqKey"] == message.message_id
        assert dict(row["properties"])["n"] == row["body"].decode()
        assert round(row["storeTimestamp"].timestamp() * 1000) == message.store_timestamp


def test_messages_of_a_queue_come_in_their_order(mq: LocalCluster) -> None:
    seen: dict[tuple[str, int], int] = {}
    for row in read_all(mq, ["brokerName", "queueId", "queueOffset"], subscribe="T", minPartitions=16):
        queue = row["brokerName"], row["queueId"]
        assert row["queueOffset"] == seen.get(queue, -1) + 1
        seen[queue] = row["queueOffset"]
    assert len(seen) == 8


@pytest.mark.parametrize("options", [{"minPartitions": 30}, {"maxRecordsPerPartition": 7}, {"pullBatchSize": 3}])
def test_how_the_work_is_cut_does_not_change_what_is_read(mq: LocalCluster, options: dict[str, int]) -> None:
    assert numbers(read_all(mq, ["body"], subscribe="T", **options)) == list(range(COUNT))


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"tags": "odd"}, [n for n in range(COUNT) if n % 2]),
        ({"tags": "odd || even"}, list(range(COUNT))),
        ({"tags": "never"}, []),
        ({"sqlFilter": "n >= 100 AND n < 110"}, list(range(100, 110))),
        ({"sqlFilter": "TAGS = 'even' AND n < 4", "pullBatchSize": 1}, [0, 2]),
        ({"keys": "k7,k9"}, [7, 9]),
        ({"keys": "all", "tags": "even"}, [n for n in range(COUNT) if n % 2 == 0]),
    ],
)
def test_filters_leave_exactly_the_wanted_messages(
    mq: LocalCluster, options: dict[str, object], wanted: list[int]
) -> None:
    assert numbers(read_all(mq, ["body"], subscribe="T", **options)) == wanted


def test_a_filter_by_columns_that_were_not_asked_for_leaves_them_out(mq: LocalCluster) -> None:
    rows = read_all(mq, ["queueId", "body"], subscribe="T", keys="k3", tags="odd")
    assert [set(row) for row in rows] == [{"queueId", "body"}]


def test_only_the_columns_of_the_users_schema_are_built_in_its_order(mq: LocalCluster) -> None:
    reader = batch_reader(mq, ["body", "topic"], subscribe="T")
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert {tuple(batch.schema.names) for batch in batches} == {("body", "topic")}


def test_properties_may_stay_raw_or_away(mq: LocalCluster) -> None:
    raw = read_all(mq, ["properties"], subscribe="T", properties="raw")
    assert all(b"KEYS\x01" in row["properties"] for row in raw)
    assert "properties" not in read_all(mq, subscribe="T", properties="none")[0]


def test_assigned_queues_are_read_alone(mq: LocalCluster) -> None:
    rows = read_all(mq, ["brokerName", "queueId"], assign='{"T": {"broker-a": [1], "broker-b": [0, 3]}}')
    assert {tuple(row.values()) for row in rows} == {("broker-a", 1), ("broker-b", 0), ("broker-b", 3)}


@pytest.mark.requirement("B006")
def test_offsets_bound_what_is_read(mq: LocalCluster) -> None:
    start = json.dumps({"T": {"broker-a": {"0": 5, "1": -2, "2": 9, "3": 9}, "broker-b": dict.fromkeys("0123", 0)}})
    end = json.dumps({"T": {"broker-a": {"0": 8, "1": 2, "2": 9, "3": -1}, "broker-b": dict.fromkeys("0123", 0)}})
    rows = read_all(mq, ["queueId", "queueOffset"], subscribe="T", startingOffsets=start, endingOffsets=end)
    found = sorted((row["queueId"], row["queueOffset"]) for row in rows if row["queueId"] != 3)
    assert found == [(0, 5), (0, 6), (0, 7), (1, 0), (1, 1)]
    of_three = [row["queueOffset"] for row in rows if row["queueId"] == 3]
    last = max(m.queue_offset for m in mq.messages("T") if (m.broker_name, m.queue_id) == ("broker-a", 3))
    assert of_three == list(range(9, last + 1))


@pytest.mark.requirement("A094", "B006")
def test_times_bound_what_is_read_to_the_millisecond(mq: LocalCluster) -> None:
    times = sorted(m.store_timestamp for m in mq.messages("T"))
    begin, end = times[len(times) // 3], times[2 * len(times) // 3]
    rows = read_all(
        mq,
        ["storeTimestamp"],
        subscribe="T",
        startingTimestamp=begin,
        endingTimestamp=end,
        startingOffsetsByTimestampStrategy="latest",
    )
    found = sorted(round(row["storeTimestamp"].timestamp() * 1000) for row in rows)
    assert found == [time for time in times if begin <= time < end]


def test_a_pattern_takes_all_topics_that_match(mq: LocalCluster) -> None:
    one, two = mq.unique_topic("P-orders", queues=1), mq.unique_topic("P-bills", queues=1)
    filled(mq, one, 3)
    filled(mq, two, 2, first=3)
    assert numbers(read_all(mq, subscribePattern="P-.*")) == list(range(5))


def test_a_group_goes_on_where_it_is(mq: LocalCluster) -> None:
    topic, group = mq.unique_topic(queues=1), mq.unique_group()
    filled(mq, topic, 5)
    queue = next(iter({MessageQueue(topic, m.broker_name, 0) for m in mq.messages(topic)}))
    with mq.admin() as admin:
        admin.set_offset(group, queue, 2)
    rows = read_all(mq, subscribe=topic, startingOffsets="group", consumerGroup=group)
    left = [row for row in rows if row["brokerName"] == queue.broker_name]
    assert sorted(row["queueOffset"] for row in left) == list(
        range(2, 1 + max(m.queue_offset for m in mq.messages(topic) if m.broker_name == queue.broker_name))
    )


def test_bodies_are_decompressed_unless_told_otherwise(mq: LocalCluster) -> None:
    topic = mq.unique_topic(queues=1)
    body = b"abc" * 5000  # beyond the producer's threshold
    with mq.producer() as producer:
        producer.send(Message(topic, body))
    assert [row["body"] for row in read_all(mq, subscribe=topic)] == [body]
    assert len(read_all(mq, subscribe=topic, decompress="false")[0]["body"]) < len(body)


def test_an_empty_topic_gives_no_rows(mq: LocalCluster) -> None:
    assert read_all(mq, subscribe=mq.unique_topic()) == []


# ── what cannot be read ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_missing_topic_is_told_with_the_name_server(mq: LocalCluster) -> None:
    with pytest.raises(NoRoute, match=f"no route for topic Missing: the name server {mq.name_server_address}"):
        read_all(mq, subscribe="Missing")


def test_a_queue_that_the_topic_has_not_is_told_with_those_it_has(mq: LocalCluster) -> None:
    with pytest.raises(OptionError, match=r"queues broker-a/9, which topic T has not; it has broker-a/0"):
        read_all(mq, assign='{"T": {"broker-a": [0, 9]}}')


def test_offsets_beyond_the_end_fail_or_are_cut(mq: LocalCluster) -> None:
    end = json.dumps({"T": {"broker-a": {"0": 1000}}})
    with pytest.raises(DataLost, match=r"topic T, broker broker-a, queue 0, offsets \d+ to 1000"):
        read_all(mq, subscribe="T", endingOffsets=end)
    assert numbers(read_all(mq, subscribe="T", endingOffsets=end, failOnDataLoss="false")) == list(range(COUNT))


def test_a_wrong_condition_is_refused_before_anything_is_read(mq: LocalCluster) -> None:
    with pytest.raises(OptionError, match=r'"sqlFilter" .* is "n >", which is not an SQL92 condition: .*; write one'):
        read_all(mq, subscribe="T", sqlFilter="n >")


def answers(mq: LocalCluster) -> list[Piece]:
    """What the brokers say to a reader of T, for one broker."""
    settings = read_settings(options_for(mq, subscribe="T"), streaming=False)
    ranges = [QueueRange(MessageQueue("T", "broker-a", number), 0, 5) for number in range(2)]

    async def pulled() -> list[Piece]:
        reader = (await connected(settings.cluster)).reader()
        return [piece async for group in reader.groups(ranges, rules_of(settings)) for piece in group]

    return run(pulled())


@pytest.mark.parametrize("damage", [lambda body: body[:-3], lambda body: body[:-200] + bytes(200)])
def test_a_damaged_answer_is_an_error_and_never_fewer_rows(mq: LocalCluster, damage: Callable[[bytes], bytes]) -> None:
    settings = read_settings(options_for(mq, subscribe="T"), streaming=False)
    first, second = answers(mq)
    assert sum(batch.num_rows for batch in decoded([first, second], settings, arrow_schema())) == 10
    broken = second._replace(body=damage(bytes(second.body)))
    with pytest.raises(CorruptRecord, match="topic T, broker broker-a, queue 1, offsets 0 to 5"):
        list(decoded([first, broken], settings, arrow_schema()))


def test_what_a_broker_sends_beyond_its_range_is_left_to_the_next_one(mq: LocalCluster) -> None:
    settings = read_settings(options_for(mq, subscribe="T"), streaming=False)
    (piece, _) = answers(mq)
    narrow = piece._replace(offsets=piece.offsets._replace(begin=1, end=3))
    (batch,) = decoded([narrow], settings, arrow_schema(["queueOffset"]))
    assert batch.to_pydict() == {"queueOffset": [1, 2]}


def test_a_dead_name_server_is_told_with_its_address() -> None:
    with pytest.raises(Exception, match=r"no name server answered.*127.0.0.1:1"):
        batch_reader_for_nobody().partitions()


def batch_reader_for_nobody() -> Any:
    from skyrocket.pipeline.schema import spark_schema
    from skyrocket.pipeline.topic_source.batch import TopicReader

    return TopicReader({"namesrvAddr": "127.0.0.1:1", "subscribe": "T"}, spark_schema())


def test_brokers_that_know_no_conditions_and_brokers_that_are_dead_are_told() -> None:
    with LocalCluster(settings={"enablePropertyFilter": False}) as mq:
        mq.create_topic("D", queues=2)
        filled(mq, "D", 4)
        with pytest.raises(
            OptionError, match=r'option "sqlFilter" .* is n > 1: .*SQL92; set enablePropertyFilter=true'
        ):
            read_all(mq, subscribe="D", sqlFilter="n > 1")
        reader = batch_reader(mq, subscribe="D", brokerAbsenceMs=300)
        partitions = reader.partitions()
        mq.kill_broker()
        with pytest.raises(
            RangeUnreadable, match="topic D, broker broker-a, queue 0, offsets 0 to 2 could not be read"
        ):
            rows_of(reader, partitions)


def test_reading_goes_on_after_a_broker_was_restarted_in_the_middle() -> None:
    with LocalCluster() as mq:
        mq.create_topic("R", queues=1)
        filled(mq, "R", 400, size=2000)
        reader = batch_reader(mq, ["body"], subscribe="R", pullBatchSize=8, pullThreads=2, maxRecordsPerPartition=100)
        partitions = reader.partitions()
        found = []
        for number, part in enumerate(partitions):
            if number == 1:
                mq.restart_broker()
            found += rows_of(reader, [part])
        assert numbers(found) == list(range(400))


def test_offsets_that_retention_deleted_fail_or_are_left_out() -> None:
    with LocalCluster(settings={"mappedFileSizeCommitLog": 64 << 10, "deleteCommitLogFilesInterval": 0}) as mq:
        mq.create_topic("Old", queues=1)
        filled(mq, "Old", 200, size=1500)
        reader, lenient = (
            batch_reader(mq, ["queueOffset", "body"], subscribe="Old", failOnDataLoss=fails)
            for fails in ("true", "false")
        )
        planned, planned_leniently = reader.partitions(), lenient.partitions()
        mq.advance(days=4)
        deadline = time.monotonic() + 60
        while (low := read_low(mq)) == 0 and time.monotonic() < deadline:
            mq.advance(hours=12)
        assert 0 < low < 200
        with pytest.raises(DataLost, match="offsets are lost: topic Old, broker broker-a, queue 0, offsets 0 to"):
            rows_of(reader, planned)
        assert [row["queueOffset"] for row in rows_of(lenient, planned_leniently)] == list(range(low, 200))
        explicit = json.dumps({"Old": {"broker-a": {"0": 0}}})
        with pytest.raises(DataLost, match=f"the queue now begins at offset {low}"):
            read_all(mq, subscribe="Old", startingOffsets=explicit)
        assert len(read_all(mq, subscribe="Old", startingOffsets=explicit, failOnDataLoss="false")) == 200 - low


def read_low(mq: LocalCluster) -> int:
    """Where the queue of Old begins."""
    with mq.admin() as admin:
        return admin.min_offset(MessageQueue("Old", "broker-a", 0))
