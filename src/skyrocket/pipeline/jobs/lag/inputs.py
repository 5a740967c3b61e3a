"""The two DataFrames that `lag.run` takes, samples and messages: from a cluster, or from a store directory."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from skyrocket.errors import ConfigError
from skyrocket.pipeline.jobs.inputs import Store, messages
from skyrocket.pipeline.jobs.lag.job import MESSAGE_COLUMNS, offsets_to_read, store_samples
from skyrocket.pipeline.jobs.lag.samples import Committed, committed_in, ordered_groups, samples_table, watch
from skyrocket.pipeline.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from skyrocket.client import ClientSettings

__all__ = ["consumed_in", "of_cluster", "of_store", "ordered_groups", "sampled", "stand_options"]


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
    frame = spark.createDataFrame(samples)
    chosen = stand_options(options, samples)
    if chosen is None:
        return frame, spark.createDataFrame([], spark_schema(MESSAGE_COLUMNS))
    return frame, spark.read.format("rocketmq").schema(spark_schema(MESSAGE_COLUMNS)).options(**chosen).load()


def stand_options(options: Mapping[str, str], samples: pa.Table) -> dict[str, str] | None:
    """What format("rocketmq") is told to read the messages at which a group stood; None if none was behind."""
    starts, ends = offsets_to_read(samples)
    if not starts:
        return None
    queues = {topic: {name: sorted(map(int, of)) for name, of in brokers.items()} for topic, brokers in starts.items()}
    return {
        **options,
        "assign": json.dumps(queues),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        # What retention took from under a slow consumer is what this job is there to show.
        "failOnDataLoss": "false",
    }


def of_store(
    spark: "SparkSession", store: Path, groups: Sequence[str], topics: Sequence[str]
) -> "tuple[DataFrame, DataFrame]":
    """The committed offsets come from the broker's file, queues and times from the log."""
    committed = consumed_in(store, groups, topics)
    wanted = sorted({each.topic for each in committed})
    rows = messages(spark, Store(store), wanted, MESSAGE_COLUMNS).cache()
    return store_samples(spark, committed, rows), rows


def consumed_in(store: Path, groups: Sequence[str], topics: Sequence[str]) -> list[Committed]:
    """The committed offsets of a store; raises ConfigError where there are none."""
    committed = committed_in(store, groups, topics)
    if not committed:
        raise ConfigError(f"{store} has no offsets of consumer groups: nobody has consumed from it")
    return committed
