"""The two DataFrames that `lag.run` takes, samples and messages: from a cluster, or from a store directory."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from skyrocket.errors import ConfigError
from skyrocket.pipeline.jobs.inputs import Store, messages
from skyrocket.pipeline.jobs.lag.job import MESSAGE_COLUMNS, offsets_to_read, store_samples
from skyrocket.pipeline.jobs.lag.samples import committed_in, ordered_groups, samples_table, watch
from skyrocket.pipeline.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from skyrocket.client import ClientSettings

__all__ = ["of_cluster", "of_store", "ordered_groups", "sampled"]


def sampled(
    cluster: "ClientSettings",
    groups: Sequence[str],
    topics: Sequence[str],
    *,
    every_s: float,
    for_s: float,
    on_round: Callable[[int], None],
) -> pa.Table:
    """Ask brokers for this long (`on_round`: how many samples are to come); raises ConfigError if nothing was found."""
    found = samples_table(watch(cluster, groups, topics, every_s=every_s, for_s=for_s, on_round=on_round))
    if found.num_rows == 0:
        what = f" of topic {', '.join(topics)}" if topics else ""
        raise ConfigError(f"no group has consumed anything{what} here: check the names, the namespace and --namesrv")
    return found


def of_cluster(spark: "SparkSession", options: Mapping[str, str], samples: pa.Table) -> "tuple[DataFrame, DataFrame]":
    """The messages are read from the brokers: only those at which a group stood while it was behind."""
    starts, ends = offsets_to_read(samples)
    frame = spark.createDataFrame(samples)
    if not starts:
        return frame, spark.createDataFrame([], spark_schema(MESSAGE_COLUMNS))
    queues = {topic: {name: sorted(map(int, of)) for name, of in brokers.items()} for topic, brokers in starts.items()}
    reader = spark.read.format("rocketmq").schema(spark_schema(MESSAGE_COLUMNS)).options(**options)
    reader = reader.option("assign", json.dumps(queues)).option("startingOffsets", json.dumps(starts))
    # What retention took from under a slow consumer is what this job is there to show.
    return frame, reader.option("endingOffsets", json.dumps(ends)).option("failOnDataLoss", "false").load()


def of_store(
    spark: "SparkSession", store: Path, groups: Sequence[str], topics: Sequence[str]
) -> "tuple[DataFrame, DataFrame]":
    """The committed offsets come from the broker's file, queues and times from the log."""
    committed = committed_in(store, groups, topics)
    if not committed:
        raise ConfigError(f"{store} has no offsets of consumer groups: nobody has consumed from it")
    wanted = sorted({each.topic for each in committed})
    rows = messages(spark, Store(store), wanted, MESSAGE_COLUMNS).cache()
    return store_samples(spark, committed, rows), rows
