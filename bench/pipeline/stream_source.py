"""format("rocketmq") as a source: a topic of a server beside it into Spark, with what lies under it.

    python -m bench.pipeline.stream_source                          256 B and 1 KiB bodies, 400,000 messages
    python -m bench.pipeline.stream_source --messages 100000 --rounds 1
    python -m bench.pipeline.stream_source --set maxTransferCountOnMessageInMemory=1024 \\
        --set maxTransferBytesOnMessageInMemory=4194304         a broker that gives more at once than RocketMQ's 32

pulls      bodies of pull answers alone, in this process: the floor that server and sockets set
source     the same and decoded into Arrow, in this process: what one task can do
count      spark.read, two tasks, all columns, to nowhere
stream     spark.readStream until everything is there (AvailableNow, batches of a quarter), to nowhere
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from bench.load.own_server import own_server
from skyrocket.client import Admin, Message, Producer
from skyrocket.client.consumer.queue_ranges import QueueRange
from skyrocket.pipeline import read_stream, session
from skyrocket.pipeline.schema import spark_schema
from skyrocket.pipeline.topic_source import reading
from skyrocket.pipeline.topic_source.batch import TopicReader
from skyrocket.pipeline.topic_source.connection import connected, run
from skyrocket.pipeline.topic_source.settings import read_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUEUES = 8
SENT_TOGETHER = 200


async def fill(names: str, topic: str, count: int, size: int) -> None:
    """Batches, some in flight."""
    async with Admin(names) as admin:
        await admin.create_topic(topic, QUEUES)
    body = b"x" * size
    async with Producer("bench", names) as producer:
        messages = [Message(topic, body, tags="TagA", keys=[f"{number}"]) for number in range(SENT_TOGETHER)]
        for first in range(0, count, SENT_TOGETHER * 8):
            left = min(8, -(-(count - first) // SENT_TOGETHER))
            await asyncio.gather(*(producer.send_batch(messages) for _ in range(left)))


def pull_only(options: dict[str, str]) -> int:
    """Bytes of all bodies."""
    settings = read_settings(options, streaming=False)
    ranges = ranges_of_reader(TopicReader(options, spark_schema()))

    async def read() -> int:
        reader = (await connected(settings.cluster)).reader()
        rules = reading.rules_of(settings)
        return sum([len(piece.body) async for group in reader.groups(ranges, rules) for piece in group])

    return run(read())


def ranges_of_reader(reader: TopicReader) -> list[QueueRange]:
    return [piece for part in reader.partitions() for piece in part.ranges]  # type: ignore[attr-defined]


def source_only(options: dict[str, str]) -> int:
    reader = TopicReader(options, spark_schema())
    return sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part))


def count_in_spark(spark: "SparkSession", options: dict[str, str]) -> None:
    spark.read.format("rocketmq").options(**options).load().write.format("noop").mode("append").save()


def stream_in_spark(spark: "SparkSession", options: dict[str, str], most: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        frame = read_stream(spark, checkpoint=folder, **options, startingOffsets="earliest", maxOffsetsPerTrigger=most)
        query = frame.writeStream.format("noop").option("checkpointLocation", folder)
        query.trigger(availableNow=True).start().awaitTermination()


def measure(spark: "SparkSession", names: str, count: int, size: int, rounds: int) -> None:
    """A table line for each way, the median of rounds in turn."""
    topic = f"SourceBench{size}"
    asyncio.run(fill(names, topic, count, size))
    options = {"namesrvAddr": names, "subscribe": topic}
    ways: dict[str, Callable[[], object]] = {
        "pulls": lambda: pull_only(options),
        "source": lambda: source_only(options),
        "count": lambda: count_in_spark(spark, options),
        "stream": lambda: stream_in_spark(spark, options, count // 4),
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, work in ways.items():
            began = time.perf_counter()
            work()
            if number:  # the first round warms workers up
                taken[way].append(time.perf_counter() - began)
    floor = statistics.median(taken["pulls"])
    for way, times in taken.items():
        spent = statistics.median(times)
        rate = count / spent
        print(f"| {size} B | {way} | {rate / 1000:.0f} | {rate * size / 1e6:.0f} | {floor / spent:.2f} |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], help="a setting of the server, KEY=VALUE")
    given = parser.parse_args()
    print("| bodies | what | k messages/s | MB/s of bodies | of the pulls |\n| --- | --- | --- | --- | --- |")
    with own_server(given.set) as server:
        names = "{}:{}".format(*server.name_server)
        spark = session("source bench", "local[2]", {"spark.ui.enabled": "false", "spark.driver.memory": "3g"})
        spark.sparkContext.setLogLevel("ERROR")
        for size in (256, 1024):
            measure(spark, names, given.messages, size, given.rounds)
        spark.stop()


if __name__ == "__main__":
    main()
