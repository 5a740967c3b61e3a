"""The commit log → a lake of Parquet files, two tasks, files flushed to disk."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from bench.pipeline.logs import LogShape
from bench.pipeline.measure import Rate, best_of
from skyrocket.pipeline.jobs import archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def archiving(spark: "SparkSession", store: Path, shape: LogShape, log_bytes: int, times: int) -> list[Rate]:
    """The job `archive` into an empty lake, and the same by Spark's own Parquet writer."""
    small = shape.body_bytes <= 256
    lake, by_spark = store.parent / "lake", store.parent / "by-spark"

    def by_us() -> None:
        shutil.rmtree(lake, ignore_errors=True)
        source = archive.ArchiveFrom(store, "broker-a")
        report = archive.run(spark, source, lake, split_bytes=log_bytes // 4)
        assert report.tables["archive"].to_pylist()[0]["messages"] == shape.messages

    def by_the_jvm() -> None:
        rows = spark.read.format("rocketmq-commitlog").option("splitBytes", str(log_bytes // 4)).load(str(store))
        rows.write.option("compression", "zstd").partitionBy("topic").mode("overwrite").parquet(str(by_spark))

    rates = [
        Rate("archive → Parquet", shape.messages, log_bytes, best_of(times, by_us), 0.5 if small else 0.19),
        Rate(
            "the same, written by the JVM",
            shape.messages,
            log_bytes,
            best_of(times, by_the_jvm),
            0.141 if small else 0.075,
        ),
    ]
    shutil.rmtree(lake, ignore_errors=True)
    shutil.rmtree(by_spark, ignore_errors=True)
    return rates
