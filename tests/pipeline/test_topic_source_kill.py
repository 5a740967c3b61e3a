"""kill -9 of driver (long mode: also of workers and brokers) while a topic streams into Parquet: everything once."""

import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skyrocket.client import Message
from skyrocket.errors import SkyrocketError
from skyrocket.pipeline import read_stream
from skyrocket.testing import LocalCluster
from tests.pipeline.driver import Driver
from tests.pipeline.topics import filled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def batches_done(folder: Path) -> int:
    return len([path for path in (folder / "checkpoint" / "commits").glob("*") if path.name.isdecimal()])


def found_in(spark: "SparkSession", folder: Path) -> Counter[int]:
    rows = spark.read.parquet(str(folder / "lake")).selectExpr("cast(body as string) body").collect()
    return Counter(int(row.body) for row in rows)


@pytest.mark.timeout(600)  # two sessions are started, on a machine that may be busy
def test_a_killed_driver_loses_nothing_and_repeats_nothing(
    spark: "SparkSession", rocketmq: LocalCluster, tmp_path: Path
) -> None:
    rocketmq.create_topic("Killed", queues=3)
    filled(rocketmq, "Killed", 3000)
    with Driver(rocketmq, "Killed", tmp_path) as driver:
        driver.wait_for(lambda: batches_done(tmp_path) >= 2)
    filled(rocketmq, "Killed", 100, first=3000)
    checkpoint = str(tmp_path / "checkpoint")
    stream = read_stream(
        spark,
        checkpoint=checkpoint,
        namesrvAddr=rocketmq.name_server_address,
        subscribe="Killed",
        startingOffsets="earliest",
    )
    writer = stream.select("queueId", "queueOffset", "brokerName", "body").writeStream.format("parquet")
    writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    writer.start(str(tmp_path / "lake")).awaitTermination()
    assert found_in(spark, tmp_path) == Counter(range(3100))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.rocketmq(settings={"flushDiskType": "SYNC_FLUSH"})
def test_random_kills_of_driver_worker_and_broker_lose_nothing_that_was_acknowledged(
    spark: "SparkSession", rocketmq: LocalCluster, tmp_path: Path
) -> None:
    rocketmq.create_topic("Chaos", queues=3)
    acknowledged: list[int] = []
    ending = threading.Event()

    def send() -> None:
        number = 0
        with rocketmq.producer() as producer:
            while not ending.is_set():
                try:
                    producer.send(Message("Chaos", str(number).encode()))
                    acknowledged.append(number)
                except SkyrocketError:
                    time.sleep(0.1)  # nobody knows whether it was stored: that number is not used again
                number += 1
                time.sleep(0.02)

    sending = threading.Thread(target=send)
    sending.start()
    chance = random.Random(7)
    workers_killed = 0
    try:
        for _ in range(4):
            with Driver(rocketmq, "Chaos", tmp_path) as driver:
                goal = batches_done(tmp_path) + 1
                driver.wait_for(lambda goal=goal: batches_done(tmp_path) >= goal)  # type: ignore[misc]
                workers_killed += driver.kill_a_worker(chance) > 0
                driver.wait_for(lambda goal=goal: batches_done(tmp_path) > goal)  # type: ignore[misc]
                rocketmq.kill_broker()
                time.sleep(chance.uniform(0, 1))
                rocketmq.start_broker()
                time.sleep(chance.uniform(0, 4))
    finally:
        ending.set()
        sending.join()
    with Driver(rocketmq, "Chaos", tmp_path, "now") as driver:
        driver.wait()
    assert workers_killed > 0
    found = found_in(spark, tmp_path)
    assert set(acknowledged) <= set(found)
    stored = Counter(int(message.body) for message in rocketmq.messages("Chaos"))
    assert found == stored  # what the sender's own retries stored twice is twice there, nothing else
