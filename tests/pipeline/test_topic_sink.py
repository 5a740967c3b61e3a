"""df.write and df.writeStream into topics, through real Spark."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from skyrocket.pipeline.topic_sink import by_sharding_key
from skyrocket.testing import LocalCluster
from tests.pipeline.sink_tasks import bodies

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(300)  # the first one may have to wait for the JVM

PROGRAM = Path(__file__).parent / "sink_program.py"


@pytest.fixture
def orders(rocketmq: LocalCluster) -> LocalCluster:
    rocketmq.create_topic("Orders", queues=4)
    return rocketmq


def names_of(mq: LocalCluster) -> str:
    names = mq.client_settings.name_servers
    assert isinstance(names, str)
    return names


def write(frame: "DataFrame", mq: LocalCluster, **options: str) -> None:
    given = {"namesrvAddr": names_of(mq), "topic": "Orders", **options}
    frame.write.format("rocketmq").options(**given).mode("append").save()


def test_a_frame_is_in_the_topic_with_all_its_columns(
    spark: "SparkSession", orders: LocalCluster, tmp_path: Path
) -> None:
    frame = spark.sql(
        """SELECT concat('row ', id) AS value, 'TagA' AS tags, array('k', string(id)) AS keys,
                  map('customer', concat('c', id % 3)) AS properties, concat('o', id % 5) AS shardingKey
           FROM range(0, 500, 1, 3)"""
    )
    job = {"jobId": "nightly", "checkpointLocation": str(tmp_path)}
    write(by_sharding_key(frame, partitions=2), orders, **job)
    write(frame, orders, **job)  # run again, in other partitions: the job is done
    messages = orders.messages("Orders")
    assert Counter(message.body.decode() for message in messages) == Counter(f"row {n}" for n in range(500))
    some = next(message for message in messages if message.body == b"row 7")
    assert (some.tags, some.keys, some.sharding_key, some.properties["customer"]) == ("TagA", ["k", "7"], "o2", "c1")
    record = json.loads((tmp_path / "rocketmq-sink" / "jobs" / "nightly.committed").read_text())
    assert record["messages"] == 500
    assert record["bytes"] == sum(len(message.body) for message in messages)
    assert {(queue["queueId"], queue["messages"]) for queue in record["queues"]} == set(
        Counter(message.queue_id for message in messages).items()
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.rocketmq(brokers=2)
def test_a_million_rows_are_spread_over_two_brokers(
    spark: "SparkSession", rocketmq: LocalCluster, tmp_path: Path
) -> None:
    rocketmq.create_topic("Orders", queues=8)
    frame = spark.sql("SELECT concat('row ', id) AS body FROM range(0, 1000000, 1, 7)")
    write(frame, rocketmq, jobId="million", checkpointLocation=str(tmp_path))
    record = json.loads(next(tmp_path.rglob("million.committed")).read_text())
    counts = [queue["messages"] for queue in record["queues"]]
    assert (len(counts), sum(counts)) == (16, 1_000_000)
    assert max(counts) <= 1.1 * 1_000_000 / 16
    with rocketmq.admin() as admin:
        ends = [(queue.broker_name, queue.queue_id) for queue in admin.queues("Orders")]
    assert sorted(ends) == sorted((queue["broker"], queue["queueId"]) for queue in record["queues"])


def test_exactly_once_shows_a_job_as_a_whole_and_once(
    spark: "SparkSession", orders: LocalCluster, tmp_path: Path
) -> None:
    job = {"jobId": "nightly", "checkpointLocation": str(tmp_path), "deliveryGuarantee": "exactly-once"}
    fails = spark.sql(
        "SELECT IF(id = 150, raise_error('in the middle'), concat('row ', id)) AS body FROM range(0, 200, 1, 4)"
    )
    with pytest.raises(PySparkException, match="in the middle"):
        write(fails, orders, **job)
    assert not orders.messages("Orders"), "three tasks have ended well, and nothing is seen"
    frame = spark.sql("SELECT concat('row ', id % 100) AS body FROM range(0, 200, 1, 3)")
    write(frame, orders, **job)
    write(frame, orders, **job)  # run again: the job is done
    assert bodies(orders) == Counter({f"row {number}": 2 for number in range(100)})
    assert [path.name for path in (tmp_path / "rocketmq-sink" / "jobs").iterdir()] == ["nightly.committed"]


@pytest.mark.parametrize(
    ("select", "options", "problem"),
    [
        ("'x' AS body, 'y' AS tag", {}, 'did you mean "tags"'),
        ("'x' AS body", {"topic": "Oders"}, "topic Oders does not exist"),
        ("'x' AS body", {"sendTimout": "3s"}, 'did you mean "sendTimeout"'),
        ("repeat('x', IF(id = 1, 3000000, 5)) AS body", {"maxMessageSize": "2m"}, "has a body of 3000000 bytes"),
        ("IF(id = 1, NULL, 'x') AS body", {}, "has no body (NULL)"),
    ],
)
def test_what_cannot_be_sent_is_refused_and_nothing_is_stored(
    spark: "SparkSession", orders: LocalCluster, select: str, options: dict[str, str], problem: str
) -> None:
    frame = spark.sql(f"SELECT {select} FROM range(0, 3, 1, 1)")
    with pytest.raises(PySparkException) as refused:
        write(frame, orders, **options)
    assert problem in str(refused.value)
    assert not orders.messages("Orders")


def test_a_topic_cannot_be_overwritten(spark: "SparkSession", orders: LocalCluster) -> None:
    frame = spark.sql("SELECT 'x' AS body")
    with pytest.raises(PySparkException, match="cannot be overwritten"):
        frame.write.format("rocketmq").option("namesrvAddr", names_of(orders)).option("topic", "Orders").mode(
            "overwrite"
        ).save()


def test_a_stream_goes_on_from_batch_to_batch(spark: "SparkSession", orders: LocalCluster, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for number in range(3):
        (source / f"{number}.txt").write_text("".join(f"{number} {row}\n" for row in range(50)))
    checkpoint = tmp_path / "checkpoint"
    stream(spark, orders, source, checkpoint, partitions=2, files=1)
    assert bodies(orders) == Counter(f"{number} {row}" for number in range(3) for row in range(50))
    assert len(list(checkpoint.rglob("*.committed"))) == 3


def stream(
    spark: "SparkSession", mq: LocalCluster, source: Path, checkpoint: Path, *, partitions: int, files: int = 10
) -> None:
    query = (
        spark.readStream.option("maxFilesPerTrigger", str(files))
        .text(str(source))
        .repartition(partitions)
        .writeStream.format("rocketmq")
        .option("namesrvAddr", names_of(mq))
        .option("topic", "Orders")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(400)


@pytest.mark.timeout(900)  # two drivers, one after the other
@pytest.mark.parametrize("when", ["before", pytest.param("after", marks=pytest.mark.slow)])
def test_a_failed_task_and_a_killed_driver_store_every_row_once(
    spark: "SparkSession", orders: LocalCluster, tmp_path: Path, when: str
) -> None:
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    source.mkdir()
    for number in range(2):
        (source / f"{number}.txt").write_text("".join(f"{number} {row}\nsame\n" for row in range(100)))
    expected = Counter(f"{number} {row}" for number in range(2) for row in range(100)) + Counter({"same": 200})
    with dying(names_of(orders), source, checkpoint, when) as program:
        assert program.wait(400) != 0
    left = bodies(orders)
    # Equal rows of two partitions have equal ids, so the second attempt may have taken some of the other's for its
    # own. The sink's commit finds out how many are missing.
    assert left["same"] == 200 if when == "after" else 110 <= left["same"] <= 200
    assert Counter({**left, "same": 200}) == expected
    stream(spark, orders, source, checkpoint, partitions=3)
    assert bodies(orders) == expected
    (record,) = checkpoint.rglob("*.committed")
    told: dict[str, Any] = json.loads(record.read_text())
    if when == "before":
        assert (told["foundStored"], told["copiesAdded"]) == (400, 200 - left["same"])
    assert (checkpoint / "commits" / "0").exists()


def dying(names: str, source: Path, checkpoint: Path, when: str) -> "Program":
    command = [sys.executable, str(PROGRAM), names, "Orders", str(source), str(checkpoint), when]
    return Program(command)


class Program:
    """A process with its children, none of which is left."""

    def __init__(self, command: list[str]) -> None:
        flags = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": flags, "PYTHONPATH": str(PROGRAM.parents[2])}
        self._process = subprocess.Popen(
            command, start_new_session=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def __enter__(self) -> "subprocess.Popen[bytes]":
        return self._process

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)
