"""format("rocketmq") in Spark: batch, stream, restart, progress, errors."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException

from skyrocket.client import Message
from skyrocket.pipeline import read_stream
from skyrocket.testing import LocalCluster
from tests.pipeline.topics import filled
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEADLINE = 120.0


@pytest.fixture(scope="module")
def mq() -> Iterator[LocalCluster]:
    with LocalCluster(brokers=2) as cluster:
        yield cluster


def table(spark: "SparkSession", mq: LocalCluster, **options: object) -> "DataFrame":
    reader = spark.read.format("rocketmq").option("namesrvAddr", mq.name_server_address)
    return reader.options(**{name: str(value) for name, value in options.items()}).load()


def run_to_parquet(stream: "DataFrame", folder: Path, checkpoint: str) -> Any:
    """All that is there now, then the end."""
    writer = stream.selectExpr("cast(body as string) body").writeStream.format("parquet")
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(str(folder))
    query.awaitTermination()
    return query


def bodies(spark: "SparkSession", folder: Path) -> list[int]:
    return sorted(int(row.body) for row in spark.read.parquet(str(folder)).collect())


def test_a_topic_is_a_table_that_can_be_used_twice(spark: "SparkSession", mq: LocalCluster) -> None:
    topic = mq.unique_topic()
    filled(mq, topic, 100)
    messages = table(spark, mq, subscribe=topic)
    assert messages.filter("tags = 'odd'").count() == 50
    assert messages.count() == 100  # a source that pushes filters down would say 50
    pruned = spark.read.format("rocketmq").schema("queueId int, properties map<string,string>")
    pruned = pruned.options(namesrvAddr=mq.name_server_address, subscribe=topic)
    (total,) = pruned.load().selectExpr("sum(cast(properties['n'] as int)) total").collect()
    assert total.total == sum(range(100))
    spark.sql(
        f"CREATE TEMPORARY VIEW orders USING rocketmq OPTIONS (namesrvAddr '{mq.name_server_address}', "
        f"subscribe '{topic}', tags 'even')"
    )
    rows = spark.sql("SELECT tags, count(*) n, max(storeTimestamp) newest FROM orders GROUP BY tags").collect()
    assert [(row.tags, row.n) for row in rows] == [("even", 50)]
    assert round(rows[0].newest.timestamp() * 1000) <= mq.now_ms


def test_a_stream_stops_at_now_and_goes_on_from_its_checkpoint(
    spark: "SparkSession", mq: LocalCluster, tmp_path: Path, checkpoint: str
) -> None:
    topic, group = mq.unique_topic(), mq.unique_group()
    filled(mq, topic, 100)
    options: dict[str, Any] = {"namesrvAddr": mq.name_server_address, "subscribe": topic, "consumerGroup": group}
    options |= {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 60}
    first = run_to_parquet(read_stream(spark, checkpoint=checkpoint, **options), tmp_path / "out", checkpoint)
    assert [progress.numInputRows > 0 for progress in first.recentProgress] == [True, True]
    assert bodies(spark, tmp_path / "out") == list(range(100))
    assert sum(mq.offsets(group).values()) == 100  # also the last batch
    filled(mq, topic, 20, first=100)
    run_to_parquet(read_stream(spark, checkpoint=checkpoint, **options), tmp_path / "out", checkpoint)
    assert bodies(spark, tmp_path / "out") == list(range(120))
    assert sum(mq.offsets(group).values()) == 120


def test_a_stream_that_begins_at_the_end_sees_what_comes_while_it_runs_and_survives_a_broker_restart(
    spark: "SparkSession", checkpoint: str
) -> None:
    with LocalCluster() as mq:
        mq.create_topic("Live", queues=2)
        filled(mq, "Live", 5)
        stream = read_stream(spark, checkpoint=checkpoint, namesrvAddr=mq.name_server_address, subscribe="Live")
        seen: list[int] = []

        def take(rows: "DataFrame", _: int) -> None:
            seen.extend(int(row.body) for row in rows.selectExpr("cast(body as string) body").collect())

        query = stream.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint).start()
        start = Path(checkpoint) / "rocketmq-source"
        reached(lambda: start.exists() and any(start.glob("*.json")), query)
        filled(mq, "Live", 10, first=5)
        reached(lambda: len(seen) >= 10, query)
        mq.restart_broker()
        filled(mq, "Live", 10, first=15)
        reached(lambda: len(seen) >= 20, query)
        query.stop()
        assert sorted(seen) == list(range(5, 25))


def reached(condition: Callable[[], bool], query: Any) -> None:
    """Wait for something that a query does; it must not end before."""

    def is_so() -> bool:
        assert query.isActive, query.exception()
        return condition()

    wait_until(is_so, seconds=DEADLINE)


def test_errors_reach_the_user_with_their_cause(spark: "SparkSession", mq: LocalCluster, checkpoint: str) -> None:
    with pytest.raises(AnalysisException, match='no option "subscribes"; did you mean "subscribe"'):
        table(spark, mq, subscribes="T")
    with pytest.raises(AnalysisException, match="no route for topic Missing"):
        table(spark, mq, subscribe="Missing").count()
    with pytest.raises(AnalysisException, match="there is no column 'bodyy'; did you mean 'body'"):
        spark.read.format("rocketmq").schema("bodyy binary").options(
            namesrvAddr=mq.name_server_address, subscribe="T"
        ).load().count()
    stream = spark.readStream.format("rocketmq").options(namesrvAddr=mq.name_server_address, subscribe="T").load()
    query = stream.writeStream.format("noop").option("checkpointLocation", checkpoint)
    with pytest.raises((StreamingQueryException, AnalysisException), match="another place each time"):
        query.trigger(availableNow=True).start().awaitTermination()


def test_a_batch_of_bytes_keeps_every_byte(spark: "SparkSession", mq: LocalCluster) -> None:
    topic = mq.unique_topic(queues=1)
    payload = bytes(range(256)) * 40
    with mq.producer() as producer:
        producer.send(Message(topic, payload))
    (row,) = table(spark, mq, subscribe=topic).select("body").collect()
    assert bytes(row.body) == payload
