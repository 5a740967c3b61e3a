"""kill -9 of driver (long mode: also of workers and brokers) while a topic streams into Parquet: everything once."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from skyrocket.client import Message
from skyrocket.errors import SkyrocketError
from skyrocket.pipeline import read_stream
from skyrocket.testing import LocalCluster
from tests import ROOT
from tests.pipeline.topics import filled
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEADLINE = 200.0


class Driver:
    """A Spark driver in a process group of its own."""

    def __init__(self, mq: LocalCluster, topic: str, folder: Path, until: str = "forever") -> None:
        folder.mkdir(exist_ok=True)
        self._log = folder / "driver.log"
        command = [sys.executable, "-m", "tests.pipeline.stream_to_parquet"]
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                [*command, mq.name_server_address, topic, str(folder), until],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd=ROOT,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """kill -9, of Python, the JVM and all workers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Until something is so; it must not end before."""

        def is_so() -> bool:
            assert self._process.poll() is None, self.tail()
            return condition()

        wait_until(is_so, seconds=DEADLINE)

    def kill_a_worker(self, chance: random.Random) -> int:
        """kill -9 of one Python process that runs tasks; how many there were to choose from."""
        workers = [pid for pid in processes() if parent(pid) in self._daemons()]
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)
        return len(workers)

    def _daemons(self) -> set[int]:
        """Spark forks its workers from a process that it starts once."""
        return {
            pid for pid in processes() if session_of(pid) == self._process.pid and b"pyspark.daemon" in command(pid)
        }

    def wait(self) -> None:
        assert self._process.wait(DEADLINE) == 0, self.tail()

    def tail(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]


def processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""  # it has just ended


def session_of(pid: int) -> int:
    return _status_number(pid, 3)


def parent(pid: int) -> int:
    return _status_number(pid, 1)


def _status_number(pid: int, place: int) -> int:
    """A number of /proc/<pid>/stat behind the name, which stands in brackets and may hold anything."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[place])
    except OSError:
        return -1


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
