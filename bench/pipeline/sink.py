"""format("rocketmq") as a sink: rows of Spark into a topic of a server beside it, with the floor under it.

    python -m bench.pipeline.sink                          256 B and 1 KiB bodies, 400,000 rows
    python -m bench.pipeline.sink --rows 100000 --rounds 1

floor      the same rows from the JVM into Python tasks that drop them (the Arrow writer of Spark alone)
encoding   rows into batch requests in one process, as CPU time: what a core can do if brokers cost nothing
sink       into the topic: two tasks, the server and Spark share the machine's cores
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from bench.load.own_server import own_server
from skyrocket.client import blocking
from skyrocket.pipeline.session import session
from skyrocket.pipeline.topic_sink.identity import ID_SIZE, IDS, Scope
from skyrocket.pipeline.topic_sink.input_columns import InputColumns
from skyrocket.pipeline.topic_sink.requests import queue_indices, requests
from skyrocket.pipeline.topic_sink.rows import RowNumbers, rows_of_topics
from skyrocket.pipeline.topic_sink.settings import SinkSettings
from skyrocket.pipeline.topic_source.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC = "SinkBench"
QUEUES = 8
ROWS_PER_BATCH = 10_000


class Floor(DataSource):
    """format("floor"): takes rows and forgets them."""

    @classmethod
    def name(cls) -> str:
        return "floor"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return FloorWriter()


class FloorWriter(DataSourceArrowWriter):
    """Counts bytes, so that they are looked at."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for batch in iterator:
            assert batch.nbytes
        return WriterCommitMessage()


def frame_of(spark: "SparkSession", rows: int, size: int) -> "DataFrame":
    """Rows that are in the JVM's memory, so that making them is not measured."""
    text = f"rpad(string(id), {size}, 'x') AS body, 'TagA' AS tags, string(id) AS keys, string(id % 997) AS shardingKey"
    frame = spark.sql(f"SELECT {text} FROM range(0, {rows}, 1, 2)").cache()
    frame.count()
    return frame


def seconds(frame: "DataFrame", form: str, **options: str) -> float:
    began = time.perf_counter()
    frame.write.format(form).options(**options).mode("append").save()
    return time.perf_counter() - began


def encoding_rate(size: int, *, with_ids: bool) -> float:
    """Rows per second of CPU time."""
    count = ROWS_PER_BATCH
    columns = {
        "body": pa.array([f"{number}".ljust(size, "x") for number in range(count)]),
        "tags": pa.array(["TagA"] * count),
        "keys": pa.array([f"{number}" for number in range(count)]),
        "shardingKey": pa.array([f"{number % 997}" for number in range(count)]),
    }
    batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    settings = SinkSettings(Cluster(""), TOPIC)
    names, scope = InputColumns({name: name for name in columns}), Scope("bench")

    def once() -> None:
        (rows,) = rows_of_topics(batch, names, settings, RowNumbers(0, 0))
        random = np.frombuffer(os.urandom(ID_SIZE * count), IDS)
        ids = scope.ids(rows.contents()) if with_ids else random
        requests(rows, ids, queue_indices(rows, list(range(QUEUES)), 0), 256 << 10)

    once()
    best = 0.0
    for _ in range(5):
        began = time.process_time()
        for _ in range(4):
            once()
        best = max(best, 4 * count / (time.process_time() - began))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    conf = {"spark.ui.enabled": "false", "spark.driver.memory": "3g"}
    print("| bodies | what | k rows/s | MB/s | of the floor |\n| --- | --- | --- | --- | --- |")
    with own_server() as server:
        names = "{}:{}".format(*server.name_server)
        with blocking.Admin(names) as admin:
            admin.create_topic(TOPIC, QUEUES)
        spark = session("sink bench", "local[2]", conf)
        spark.sparkContext.setLogLevel("ERROR")
        spark.dataSource.register(Floor)
        for size in (256, 1024):
            measure(spark, names, given.rows, size, given.rounds)
        spark.stop()


def measure(spark: "SparkSession", names: str, rows: int, size: int, rounds: int) -> None:
    """One table line for each way, the median of rounds in turn."""
    frame = frame_of(spark, rows, size)
    target = {"namesrvAddr": names, "topic": TOPIC}
    ways: dict[str, Callable[[], float]] = {
        "floor": lambda: seconds(frame, "floor"),
        "sink, idempotent": lambda: seconds(frame, "rocketmq", **target),
        "sink, at-least-once": lambda: seconds(frame, "rocketmq", deliveryGuarantee="at-least-once", **target),
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, run in ways.items():
            spent = run()
            if number:  # the first round warms workers up
                taken[way].append(spent)
    floor = rows / statistics.median(taken["floor"])
    for way, times in taken.items():
        line(size, way, rows / statistics.median(times), floor)
    for way, with_ids in (("encoding with ids, a core", True), ("encoding without, a core", False)):
        line(size, way, encoding_rate(size, with_ids=with_ids), floor)
    frame.unpersist()


def line(size: int, way: str, rate: float, floor: float) -> None:
    print(f"| {size} B | {way} | {rate / 1000:.0f} | {rate * size / 1e6:.0f} | {rate / floor:.2f} |", flush=True)


if __name__ == "__main__":
    main()
