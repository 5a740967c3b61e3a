"""Queries of a real Spark report themselves to the name servers."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skyrocket.errors import ConfigError
from skyrocket.model.query_report import QUERIES, QueryReport, key_of, report_of
from skyrocket.pipeline import read_stream, report_queries
from skyrocket.pipeline.query_reports.described import Place
from skyrocket.pipeline.query_reports.sending import put_report
from skyrocket.pipeline.topic_source.cluster import Cluster
from skyrocket.testing import LocalCluster
from tests.pipeline.topics import filled
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def mq() -> Iterator[LocalCluster]:
    with LocalCluster() as cluster:
        yield cluster


def reported(mq: LocalCluster) -> dict[str, QueryReport | None]:
    with mq.admin() as admin:
        return {key: report_of(text) for key, text in admin.values(QUERIES).items()}


def test_a_query_reports_its_start_its_batches_its_sink_and_its_end_under_its_group(
    spark: "SparkSession", mq: LocalCluster, tmp_path: Path, checkpoint: str
) -> None:
    topic, group = mq.unique_topic(), mq.unique_group()
    filled(mq, topic, 20)
    options: dict[str, Any] = {"namesrvAddr": mq.name_server_address, "startingOffsets": "earliest"}
    reports = report_queries(spark, ui_address="http://spark.example:4040/")
    stream = read_stream(spark, checkpoint=checkpoint, subscribe=topic, consumerGroup=group, **options)
    writer = stream.select("body").writeStream.format("parquet").option("checkpointLocation", checkpoint)
    query = writer.queryName("orders ▸ lake").start(str(tmp_path / "lake"))
    key = key_of(group, "orders ▸ lake")
    wait_until(lambda: key in reported(mq), seconds=20)
    running = reported(mq)[key]
    query.processAllAvailable()
    query.stop()

    unnamed = read_stream(spark, checkpoint=f"{checkpoint}2", subscribe=topic, consumerGroup=group, **options)
    to_topic = unnamed.select("body").writeStream.format("rocketmq").option("topic", mq.unique_topic())
    to_topic = to_topic.option("namesrvAddr", mq.name_server_address).option("checkpointLocation", f"{checkpoint}2")
    second = to_topic.trigger(availableNow=True).start()
    second.awaitTermination()
    alone = read_stream(spark, checkpoint=f"{checkpoint}3", subscribe=topic, **options)  # without a group
    to_nobody = alone.writeStream.format("noop").option("checkpointLocation", f"{checkpoint}3")
    third = to_nobody.trigger(availableNow=True).start()
    third.awaitTermination()
    reports.close()

    assert running is not None
    assert (running.state, running.name, running.query_id) == ("running", "orders ▸ lake", str(query.id))
    assert running.url == f"http://spark.example:4040/StreamingQuery/statistics?id={query.runId}"
    found = {other: report for other, report in reported(mq).items() if other.startswith(f"{group}/")}
    ended = found[key]
    by_id = found[key_of(group, str(second.id))]
    assert ended is not None
    assert by_id is not None
    assert (ended.state, ended.run_id, ended.sink) == ("ended", str(query.runId), running.sink)
    assert ended.batch is not None
    assert running.sink.startswith("FileSink[")
    assert (by_id.state, by_id.sink, by_id.name) == ("ended", "rocketmq", "")
    assert len(found) == 2
    assert [other for other in reported(mq) if str(third.id) in other] == []


def test_a_new_query_of_a_group_takes_the_place_of_those_that_nobody_has_heard_of_for_a_week(mq: LocalCluster) -> None:
    group = mq.unique_group()
    week_ms = 7 * 86_400_000
    names = [key_of(group, "old"), key_of(group, "late"), key_of(f"{group}2", "old"), key_of(group, "new")]
    times = [1000, 2000, 1000, 1500 + week_ms]
    for key, reported_ms in zip(names, times, strict=True):
        first = QueryReport("", "id", "run", "running", None, None, "", "", reported_ms)
        put_report(Place(Cluster(mq.name_server_address), key), first)
    assert sorted(key for key in reported(mq) if key.startswith(group)) == sorted(names[1:])


def test_a_session_of_spark_connect_is_told_where_to_report() -> None:
    with pytest.raises(ConfigError, match="Spark Connect: call report_queries in the program that has the driver"):
        report_queries(object())  # type: ignore[arg-type]
