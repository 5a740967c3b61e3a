"""The commit log in Spark, two tasks: to a DataFrame that nobody keeps, and to rebuilt queues and index."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from bench.pipeline.logs import LogShape
from bench.pipeline.measure import Rate, best_of
from skyrocket.pipeline.jobs import rebuild
from skyrocket.pipeline.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def source(spark: "SparkSession", store: Path, shape: LogShape, log_bytes: int, times: int) -> list[Rate]:
    """format("rocketmq-commitlog") → noop and count."""
    small = shape.body_bytes <= 256
    reader = spark.read.format("rocketmq-commitlog").option("splitBytes", str(log_bytes // 4))

    def all_columns() -> None:
        reader.load(str(store)).write.format("noop").mode("overwrite").save()

    def raw_properties() -> None:
        reader.option("properties", "raw").load(str(store)).write.format("noop").mode("overwrite").save()

    def count() -> None:
        names = ["topic", "queueId", "queueOffset"]
        assert reader.schema(spark_schema(names)).load(str(store)).count() == shape.messages

    fresh = spark.read.format("rocketmq-commitlog").option("splitBytes", str(log_bytes // 4))
    assert fresh.schema(spark_schema(["queueId"])).load(str(store)).count() == shape.messages  # warm
    rates = [
        Rate(
            "source → noop, all columns",
            shape.messages,
            log_bytes,
            best_of(times, all_columns),
            0.745 if small else 0.456,
        ),
        Rate(
            "source → noop, raw properties",
            shape.messages,
            log_bytes,
            best_of(times, raw_properties),
            0.943 if small else 0.511,
        ),
    ]
    reader = spark.read.format("rocketmq-commitlog").option("splitBytes", str(log_bytes // 4))
    rates.append(Rate("source → count, three columns", shape.messages, log_bytes, best_of(times, count)))
    return rates


def rebuilding(spark: "SparkSession", store: Path, shape: LogShape, log_bytes: int, times: int) -> list[Rate]:
    """The job `rebuild` into an empty directory, files forced to disk."""
    small = shape.body_bytes <= 256
    target = store.parent / "rebuilt"

    def queues(parts: tuple[str, ...]) -> None:
        shutil.rmtree(target, ignore_errors=True)
        report = rebuild.run(spark, store, target=target, parts=parts, split_bytes=log_bytes // 4)
        assert not report.findings

    rates = [
        Rate(
            "rebuild: queues",
            shape.messages,
            log_bytes,
            best_of(times, lambda: queues(("queues",))),
            0.96 if small else 0.71,
        ),
        Rate(
            "rebuild: queues and index", shape.messages, log_bytes, best_of(times, lambda: queues(rebuild.EVERYTHING))
        ),
    ]
    shutil.rmtree(target, ignore_errors=True)
    return rates
