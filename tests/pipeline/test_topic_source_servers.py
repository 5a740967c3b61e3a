"""format("rocketmq") reads from Skyrocket and from Apache RocketMQ 5.4.0 and 4.9.7 alike."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skyrocket.client import Admin, Message, NoRoute, Producer
from skyrocket.config.sections import StoreConfig
from skyrocket.pipeline import read_stream
from tests.integration.client.servers import OURS, SERVER_PARAMETERS, apache_or_skip, registered
from tests.interop.rocketmq_broker import running_broker
from tests.interop.standalone import running_standalone
from tests.loops import run_bounded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC, GROUP = "Spark", "SparkReaders"
DEADLINE = 120.0


@pytest.fixture(scope="module", params=SERVER_PARAMETERS)
def names(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name server of a running cluster."""
    folder: Path = tmp_path_factory.mktemp("store")
    with contextlib.ExitStack() as stack:
        if request.param == OURS:
            yield stack.enter_context(running_standalone(folder)).name_server
            return
        apache = apache_or_skip(request.param)
        address = stack.enter_context(running_broker(apache, folder, StoreConfig())).name_server
        run_bounded(registered(address))
        yield address


async def made(names: str) -> None:
    async with Admin(names) as admin:
        await admin.create_topic(TOPIC, 4)
        while True:
            with contextlib.suppress(NoRoute):
                if len(await admin.queues(TOPIC)) == 4:
                    return
            await asyncio.sleep(0.05)


async def send(names: str, first: int, count: int) -> None:
    async with Producer("SparkSenders", names) as producer:
        for number in range(first, first + count):
            await producer.send(Message(TOPIC, str(number).encode(), tags="odd" if number % 2 else "even"))
            if number % 20 == 19:
                await asyncio.sleep(0.005)  # so that not all have the same time


async def lag_and_progress(names: str) -> tuple[int, int]:
    async with Admin(names) as admin:
        lags = [lag for lag in await admin.consumer_lag(GROUP) if lag.queue.topic == TOPIC]
        return sum(lag.lag for lag in lags), sum(lag.consumer_offset for lag in lags)


@pytest.mark.timeout(600)
def test_batch_stream_and_progress(spark: "SparkSession", names: str, tmp_path: Path, checkpoint: str) -> None:
    run_bounded(made(names), DEADLINE)
    run_bounded(send(names, 0, 200), DEADLINE)
    options = {"namesrvAddr": names, "subscribe": TOPIC}
    messages = spark.read.format("rocketmq").options(**options).load()
    rows = messages.selectExpr("int(cast(body as string)) n", "unix_millis(storeTimestamp) at").collect()
    assert sorted(row.n for row in rows) == list(range(200))
    odd = spark.read.format("rocketmq").options(**options, tags="odd").load()
    (of_odd,) = odd.selectExpr("sum(int(cast(body as string))) total").collect()
    assert of_odd.total == sum(range(1, 200, 2))
    times = sorted(row["at"] for row in rows)
    begin, end = times[70], times[140]
    between = spark.read.format("rocketmq").options(
        **options, startingTimestamp=begin, endingTimestamp=end, startingOffsetsByTimestampStrategy="latest"
    )
    assert between.load().count() == sum(begin <= time < end for time in times)

    def stream() -> list[int]:
        frame = read_stream(
            spark,
            checkpoint=checkpoint,
            startingOffsets="earliest",
            consumerGroup=GROUP,
            maxOffsetsPerTrigger=120,
            **options,
        )
        writer: Any = frame.selectExpr("cast(body as string) body").writeStream.format("parquet")
        writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        writer.start(str(tmp_path / "out")).awaitTermination()
        return sorted(int(row.body) for row in spark.read.parquet(str(tmp_path / "out")).collect())

    assert stream() == list(range(200))
    assert run_bounded(lag_and_progress(names), DEADLINE) == (0, 200)
    run_bounded(send(names, 200, 40), DEADLINE)
    assert run_bounded(lag_and_progress(names), DEADLINE) == (40, 200)
    assert stream() == list(range(240))
    assert run_bounded(lag_and_progress(names), DEADLINE) == (0, 240)
