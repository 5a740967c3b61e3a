"""The messages that a replay chooses from."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from skyrocket.client import NoRoute, blocking
from skyrocket.errors import ConfigError
from skyrocket.model.topic import DLQ_PREFIX
from skyrocket.pipeline.jobs.inputs import Archive, Input, Store, Window, messages
from skyrocket.pipeline.jobs.lag.samples import committed_in
from skyrocket.pipeline.jobs.replay.steps import MESSAGE_COLUMNS, PLACE, unconsumed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from skyrocket.client import ClientSettings


def topics_of(topics: Sequence[str], dlq_group: str | None) -> list[str]:
    """The topics as given, or the one with a group's dead letters."""
    return list(topics) if dlq_group is None else [DLQ_PREFIX + dlq_group]


def check_topics(cluster: "ClientSettings", topics: Sequence[str], dlq_group: str | None, to: str | None) -> None:
    """Raises for topics that are not there, before Spark is: NoRoute, or ConfigError for a group's dead letters."""
    with blocking.Admin(client=cluster) as admin:
        for topic in (*topics, *([] if to is None else [to])):
            try:
                admin.queues(topic)
            except NoRoute as error:
                if dlq_group is None or topic == to:
                    raise
                raise ConfigError(
                    f"group {dlq_group} has no dead letters here: check its name, the namespace and --namesrv"
                ) from error


def candidates(
    spark: "SparkSession", source: Input, topics: Sequence[str], window: Window, group: str | None
) -> "DataFrame":
    """All messages of the time; of a group only what it has not consumed."""
    if group is None:
        return messages(spark, source, topics, MESSAGE_COLUMNS, window)
    if isinstance(source, Archive):
        raise ConfigError("an archive does not know how far a group is: use the cluster or --store with --group")
    if isinstance(source, Store):
        offsets = {(each.topic, each.queue_id): each.offset for each in committed_in(source.directory, [group], topics)}
        return unconsumed(spark, messages(spark, source, topics, MESSAGE_COLUMNS, window), offsets)
    # The group is only asked for its offsets: reading a batch commits nothing.
    options = {**source.options, "consumerGroup": group, "startingOffsets": "group", "commitOffsets": "false"}
    return messages(spark, replace(source, options=options), topics, MESSAGE_COLUMNS, window)


def read_list(spark: "SparkSession", path: Path) -> "DataFrame":
    """Places from a Parquet file, as the job `dlq` writes it; raises ConfigError."""
    if not path.exists():
        raise ConfigError(f"--list {path} does not exist: the job dlq writes it with --out as letters.parquet")
    listed = spark.read.parquet(str(path))
    missing = [name for name in PLACE if name not in listed.columns]
    if missing:
        raise ConfigError(f"--list {path} has no column {', '.join(missing)}: it needs {', '.join(PLACE)}")
    return listed
