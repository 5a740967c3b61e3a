"""The streaming side of the topic source against brokers in this process, called as Spark calls it, without a JVM."""

import asyncio
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from skyrocket.client import Admin
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.topic_source.loss import DataLost
from skyrocket.pipeline.topic_source.offsets import flat
from skyrocket.pipeline.topic_source.queues import BrokersAway
from skyrocket.pipeline.topic_source.splits import backlog
from skyrocket.pipeline.topic_source.stream_reader import TopicStreamReader
from skyrocket.protocol.bodies.route import ClusterInfo
from skyrocket.testing import LocalCluster
from tests.pipeline.topics import filled, numbers, rows_of, stream_reader

ALL = ReadAllAvailable()


@pytest.fixture(scope="module")
def mq() -> Iterator[LocalCluster]:
    with LocalCluster(brokers=2) as cluster:
        yield cluster


def batches(reader: TopicStreamReader, limit: Any = ALL, most: int = 100) -> Iterator[list[dict[str, Any]]]:
    """Micro-batches until there is nothing new, with a copy of the reader for the tasks as in Spark."""
    tasks = pickle.loads(pickle.dumps(reader))
    start = reader.initialOffset()
    for _ in range(most):
        end = reader.latestOffset(start, limit)
        if end == start:
            return
        reader.initialOffset()
        yield rows_of(tasks, reader.partitions(start, end))
        start = end
    raise AssertionError("the stream does not end")


def test_a_stream_has_everything_once_and_goes_on_with_what_comes_later(mq: LocalCluster) -> None:
    topic = mq.unique_topic()
    filled(mq, topic, 50)
    reader = stream_reader(mq, subscribe=topic)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    assert numbers(rows_of(reader, reader.partitions(start, end))) == list(range(50))
    assert reader.latestOffset(end, ALL) == end
    filled(mq, topic, 10, first=50)
    later = reader.latestOffset(end, ALL)
    assert numbers(rows_of(reader, reader.partitions(end, later))) == list(range(50, 60))
    assert reader.reportLatestOffset() == later


def test_a_look_waits_a_while_for_messages_that_come(mq: LocalCluster) -> None:
    topic = mq.unique_topic()
    reader = stream_reader(mq, subscribe=topic, pollTimeoutMs=60_000)
    start = reader.initialOffset()
    sending = threading.Timer(0.3, filled, (mq, topic, 1))
    sending.start()
    end = reader.latestOffset(start, ALL)
    sending.join()
    assert backlog(flat(start), flat(end)) == 1


def test_a_limit_in_messages_is_kept_and_everything_comes(mq: LocalCluster) -> None:
    topic = mq.unique_topic()
    filled(mq, topic, 100)
    reader = stream_reader(mq, subscribe=topic, maxOffsetsPerTrigger=30)
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(30)
    found = list(batches(reader, limit))
    assert len(found) >= 4
    assert all(len(rows) <= 30 for rows in found)
    assert numbers(row for rows in found for row in rows) == list(range(100))


def test_a_limit_is_ignored_when_spark_asks_for_everything(mq: LocalCluster) -> None:
    topic = mq.unique_topic()
    filled(mq, topic, 20)
    assert [len(rows) for rows in batches(stream_reader(mq, subscribe=topic, maxOffsetsPerTrigger=3), ALL)] == [20]


def test_a_limit_in_bytes_goes_by_the_size_of_messages(mq: LocalCluster) -> None:
    topic = mq.unique_topic(queues=1)
    filled(mq, topic, 40, size=1000)
    reader = stream_reader(mq, subscribe=topic, maxBytesPerTrigger="13k")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxBytes(13 << 10)
    found = list(batches(reader, limit))
    assert all(len(rows) <= 13 for rows in found)
    assert numbers(row for rows in found for row in rows) == list(range(40))


def test_small_batches_are_held_back_until_enough_is_there_or_time_is_up(mq: LocalCluster) -> None:
    topic = mq.unique_topic()
    filled(mq, topic, 5)
    patient = stream_reader(mq, subscribe=topic, minOffsetsPerTrigger=10, maxTriggerDelay="1h", maxOffsetsPerTrigger=99)
    limit = patient.getDefaultReadLimit()
    start = patient.initialOffset()
    assert patient.latestOffset(start, limit) == start
    filled(mq, topic, 5, first=5)
    assert backlog(flat(start), flat(patient.latestOffset(start, limit))) == 10
    hasty = stream_reader(mq, subscribe=topic, minOffsetsPerTrigger=99, maxTriggerDelay="0ms", maxOffsetsPerTrigger=99)
    assert backlog(flat(start), flat(hasty.latestOffset(hasty.initialOffset(), limit))) == 10


def test_an_available_now_run_ends_at_what_was_there_when_it_began(mq: LocalCluster) -> None:
    topic = mq.unique_topic()
    filled(mq, topic, 30)
    reader = stream_reader(mq, subscribe=topic, maxOffsetsPerTrigger=10, minOffsetsPerTrigger=10)
    reader.prepareForTriggerAvailableNow()
    found = []
    for rows in batches(reader, reader.getDefaultReadLimit()):
        found += rows
        filled(mq, topic, 5, first=1000)
    assert numbers(found) == list(range(30))


def test_the_beginning_is_the_same_at_every_call_and_for_every_restart(mq: LocalCluster, tmp_path: Path) -> None:
    topic = mq.unique_topic()
    filled(mq, topic, 10)
    options: dict[str, Any] = {
        "subscribe": topic,
        "startingOffsets": "latest",
        "initialOffsetsLocation": tmp_path / "start.json",
    }
    reader = stream_reader(mq, **options)
    start = reader.initialOffset()
    filled(mq, topic, 7, first=10)
    assert reader.initialOffset() == start
    restarted = stream_reader(mq, **options)  # a crash in batch 0: Spark asks a new process where it began
    assert restarted.initialOffset() == start
    end = restarted.latestOffset(start, ALL)
    assert numbers(rows_of(restarted, restarted.partitions(start, end))) == list(range(10, 17))


@pytest.mark.parametrize(
    "options",
    [{"startingOffsets": "latest"}, {"startingTimestamp": 1}, {"startingOffsets": "group", "consumerGroup": "g"}],
)
def test_a_beginning_that_moves_is_refused_without_a_place_to_remember_it(
    mq: LocalCluster, options: dict[str, Any]
) -> None:
    with pytest.raises(OptionError, match=r"another place each time.*read_stream.*initialOffsetsLocation"):
        stream_reader(mq, subscribe="T", **options)


def test_new_queues_and_new_topics_are_found_while_the_stream_runs(mq: LocalCluster) -> None:
    first = mq.unique_topic("Grow-a", queues=1)
    filled(mq, first, 4)
    reader = stream_reader(mq, subscribePattern="Grow-.*", metadataTtlMs=0)
    start = reader.initialOffset()
    assert len(flat(start)) == 2
    end = reader.latestOffset(start, ALL)
    second = mq.unique_topic("Grow-b", queues=2)
    filled(mq, second, 6, first=4)
    with mq.admin() as admin:
        admin.create_topic(first, 3)
    filled(mq, first, 30, first=10)
    found: list[dict[str, Any]] = []
    while len(found) < 36:  # brokers tell the name server of a topic's new queues when they like
        later = reader.latestOffset(end, ALL)
        found += rows_of(reader, reader.partitions(end, later))
        end = later
    assert numbers(found) == list(range(4, 40))


def test_progress_is_told_to_the_brokers_when_a_batch_has_ended(mq: LocalCluster) -> None:
    topic, group = mq.unique_topic(queues=2), mq.unique_group()
    filled(mq, topic, 20)
    reader = stream_reader(mq, subscribe=topic, consumerGroup=group)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    rows_of(reader, reader.partitions(start, end))
    assert mq.offsets(group) == {}  # the batch has not ended
    reader.latestOffset(end, ALL)
    assert mq.offsets(group) == flat(end)
    with mq.admin() as admin:
        assert [lag.lag for lag in admin.consumer_lag(group)] == [0, 0, 0, 0]


def test_progress_is_not_told_when_the_user_does_not_want_it(mq: LocalCluster) -> None:
    topic, group = mq.unique_topic(), mq.unique_group()
    filled(mq, topic, 3)
    list(batches(stream_reader(mq, subscribe=topic, consumerGroup=group, commitOffsets="false")))
    assert mq.offsets(group) == {}


def test_a_broker_that_is_away_keeps_its_offsets_and_what_it_has_comes_when_it_is_back() -> None:
    with LocalCluster(brokers=2) as mq:
        mq.create_topic("T", queues=1)
        filled(mq, "T", 10)
        reader = stream_reader(mq, subscribe="T", metadataTtlMs=0)
        end = reader.latestOffset(reader.initialOffset(), ALL)
        filled(mq, "T", 10, first=10)
        mq.stop_broker("broker-b")
        part = reader.latestOffset(end, ALL)
        assert part["T"]["broker-b"] == end["T"]["broker-b"]
        found = rows_of(reader, reader.partitions(end, part))
        mq.start_broker("broker-b")
        while len(found) < 10:
            later = reader.latestOffset(part, ALL)
            found += rows_of(reader, reader.partitions(part, later))
            part = later
        assert numbers(found) == list(range(10, 20))


def look_for_ever(reader: TopicStreamReader, start: dict[str, Any]) -> None:
    while True:
        reader.latestOffset(start, ALL)


def test_a_broker_that_stays_away_is_an_error_in_the_end() -> None:
    with LocalCluster() as mq:
        mq.create_topic("T", queues=1)
        filled(mq, "T", 3)
        reader = stream_reader(mq, subscribe="T", brokerAbsenceMs=400, metadataTtlMs=0)
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        mq.stop_broker()
        with pytest.raises(BrokersAway, match=r"(?s)topics T: no answer for .* s from broker-a.*brokerAbsenceMs"):
            look_for_ever(reader, end)
        with pytest.raises(BrokersAway, match="broker-a"):
            reader.partitions(start, end)


def test_a_deleted_topic_is_data_loss(mq: LocalCluster) -> None:
    topic = mq.unique_topic()
    filled(mq, topic, 3)
    strict, lenient = (
        stream_reader(mq, subscribe=topic, metadataTtlMs=0, failOnDataLoss=fails) for fails in ("true", "false")
    )
    end = strict.latestOffset(strict.initialOffset(), ALL)
    with mq.admin() as admin:
        admin.delete_topic(topic)
    with pytest.raises(DataLost, match=f"topic {topic}.*its broker has the topic no more"):
        strict.latestOffset(end, ALL)
    assert lenient.latestOffset(end, ALL) == end


def test_a_broker_that_comes_back_between_two_questions_has_lost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name servers know no queue of the topic any more, and a moment later the broker is there again."""
    with LocalCluster() as mq:
        filled(mq, "T", 3)
        reader = stream_reader(mq, subscribe="T", metadataTtlMs=0)
        end = reader.latestOffset(reader.initialOffset(), ALL)
        cluster = Admin.cluster

        async def back_again(admin: Admin) -> ClusterInfo:
            await asyncio.to_thread(mq.start_broker)
            return await cluster(admin)

        monkeypatch.setattr(Admin, "cluster", back_again)
        mq.stop_broker()
        assert reader.latestOffset(end, ALL) == end
        monkeypatch.undo()
        filled(mq, "T", 2, first=3)
        later = reader.latestOffset(end, ALL)
        assert numbers(rows_of(reader, reader.partitions(end, later))) == [3, 4]


def test_offsets_that_go_back_are_data_loss(mq: LocalCluster) -> None:
    topic = mq.unique_topic(queues=1)
    filled(mq, topic, 3)
    ahead = {topic: {name: {"0": 50} for name in ("broker-a", "broker-b")}}
    with pytest.raises(DataLost, match="before what was already read"):
        stream_reader(mq, subscribe=topic).latestOffset(ahead, ALL)
    lenient = stream_reader(mq, subscribe=topic, failOnDataLoss="false")
    back = lenient.latestOffset(ahead, ALL)
    assert sum(flat(back).values()) == 3
    assert rows_of(lenient, lenient.partitions(ahead, back)) == []
    filled(mq, topic, 2, first=3)
    assert numbers(rows_of(lenient, lenient.partitions(back, lenient.latestOffset(back, ALL)))) == [3, 4]


def test_a_queue_that_did_not_move_is_not_read(mq: LocalCluster) -> None:
    topic = mq.unique_topic(queues=1)
    filled(mq, topic, 1)
    reader = stream_reader(mq, subscribe=topic)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    moved = [queue for queue, offset in flat(end).items() if offset > flat(start)[queue]]
    planned = [piece.queue for part in reader.partitions(start, end) for piece in part.ranges]  # type: ignore[attr-defined]
    assert planned == moved == [MessageQueue(topic, moved[0].broker_name, 0)]
    assert rows_of(reader, reader.partitions(end, end)) == []
