"""Both sources in one Spark session; started by bench.pipeline.peers with the Spark that has a Kafka source.

Prints one line of JSON: a list of Measured.
"""

import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skyrocket.pipeline import read_stream, session
from skyrocket.pipeline.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC: Final = "PeersBench"
QUEUES: Final = 8
_BATCHES: Final = 4
_TICKS: Final = os.sysconf("SC_CLK_TCK")
# What Kafka's source gives of a message, under our names.
_SAME: Final = ("keys", "body", "topic", "queueId", "queueOffset", "storeTimestamp")


@dataclass(frozen=True)
class Measured:
    """Medians."""

    source: str
    title: str
    way: str
    seconds: float
    spark_cpu: float  # of the driver, its JVM and all workers
    server_cpu: float


@dataclass(frozen=True)
class _Source:
    name: str
    title: str
    batch: "Callable[[], DataFrame]"
    stream: "Callable[[str], DataFrame]"


def main(given: dict[str, Any]) -> None:
    """Fill Kafka, then every source in every way, in turn."""
    conf = {"spark.ui.enabled": "false", "spark.driver.memory": "3g", "spark.jars": given["jars"]}
    spark = session("peers bench", "local[2]", conf)
    spark.sparkContext.setLogLevel("ERROR")
    fill_kafka(spark, given["kafka"], given["messages"], given["body"])
    sources = [_kafka(spark, given["kafka"], given["messages"])]
    for title, columns in (("rocketmq, the same columns", _SAME), ("rocketmq, all columns", ())):
        sources.append(_ours(spark, given["names"], given["messages"], title, columns))
    for source in sources:
        found = source.batch().count()
        assert found == given["messages"], f"{source.title}: {found:,} messages"
    rows = [
        row for way in (in_a_batch, in_a_stream) for row in measured(way, sources, given["times"], given["servers"])
    ]
    print(json.dumps([asdict(row) for row in rows]))
    spark.stop()


def fill_kafka(spark: "SparkSession", address: str, count: int, size: int) -> None:
    """Through the connector itself, which makes the topic."""
    rows = spark.range(0, count, 1, QUEUES).selectExpr(
        "cast(id % 200 AS string) AS key",
        f"cast(repeat('x', {size}) AS binary) AS value",
        f"cast(id % {QUEUES} AS int) AS partition",
    )
    rows.write.format("kafka").option("kafka.bootstrap.servers", address).option("topic", TOPIC).save()


def _kafka(spark: "SparkSession", address: str, count: int) -> _Source:
    options = {"kafka.bootstrap.servers": address, "subscribe": TOPIC, "startingOffsets": "earliest"}
    limit = {"maxOffsetsPerTrigger": str(count // _BATCHES)}
    return _Source(
        "kafka",
        "Spark's kafka",
        lambda: spark.read.format("kafka").options(**options).load(),
        lambda _: spark.readStream.format("kafka").options(**options, **limit).load(),
    )


def _ours(spark: "SparkSession", names: str, count: int, title: str, columns: tuple[str, ...]) -> _Source:
    options = {"namesrvAddr": names, "subscribe": TOPIC, "startingOffsets": "earliest"}
    schema = spark_schema(columns) if columns else spark_schema()
    return _Source(
        "rocketmq",
        title,
        lambda: spark.read.format("rocketmq").options(**options).schema(schema).load(),
        lambda folder: read_stream(
            spark, checkpoint=folder, schema=schema, **options, maxOffsetsPerTrigger=count // _BATCHES
        ),
    )


def in_a_batch(source: _Source) -> None:
    """To nowhere, so that only the source is measured."""
    source.batch().write.format("noop").mode("append").save()


def in_a_stream(source: _Source) -> None:
    """AvailableNow, in four batches."""
    with tempfile.TemporaryDirectory() as folder:
        writer = source.stream(folder).writeStream.format("noop").option("checkpointLocation", folder)
        writer.trigger(availableNow=True).start().awaitTermination()


def measured(
    way: Callable[[_Source], None], sources: list[_Source], times: int, servers: dict[str, list[int]]
) -> Iterator[Measured]:
    """One round to warm up, then medians."""
    taken: dict[str, list[tuple[float, float, float]]] = {source.title: [] for source in sources}
    for number in range(times + 1):
        for source in sources:
            began, cpu, server = time.perf_counter(), cpu_of_all([os.getpid()]), cpu_of_all(servers[source.name])
            way(source)
            ended = time.perf_counter()
            spent = (ended - began, cpu_of_all([os.getpid()]) - cpu, cpu_of_all(servers[source.name]) - server)
            print(f"{way.__name__} {source.title}: {spent[0]:.2f} s", file=sys.stderr, flush=True)
            if number:
                taken[source.title].append(spent)
    kind = "batch" if way is in_a_batch else "streaming"
    for source in sources:
        seconds, spark_cpu, server_cpu = (statistics.median(each) for each in zip(*taken[source.title], strict=True))
        yield Measured(source.name, source.title, kind, seconds, spark_cpu, server_cpu)


def cpu_of_all(pids: list[int]) -> float:
    """Of processes, their descendants, and those that have ended: Spark's workers come and go."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # gone meanwhile
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(fields[1])
                ticks[int(folder.name)] = sum(map(int, fields[11:15]))
    wanted = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in wanted} - wanted:
        wanted |= more
    return sum(ticks.get(pid, 0) for pid in wanted) / _TICKS


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
