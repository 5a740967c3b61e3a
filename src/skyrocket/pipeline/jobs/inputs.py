"""Where the messages of a job come from: topics of a cluster, a broker's store directory, or an archive of Parquet.

All three give rows of the one schema, so that a job does not know which it was. Times bound the store time: since is
included, until is not.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

from skyrocket.errors import ConfigError
from skyrocket.pipeline.lake import Lake, LakeFile
from skyrocket.pipeline.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_EVERYTHING: Final = ".*"


@dataclass(frozen=True)
class Window:
    """Which store times, in milliseconds since 1970; None: no bound."""

    since_ms: int | None = None
    until_ms: int | None = None

    def __post_init__(self) -> None:
        if self.since_ms is not None and self.until_ms is not None and self.since_ms >= self.until_ms:
            raise ConfigError("--since is not before --until: no message can be in between")

    def holds(self, time: "Column") -> "Column":
        """Whether a column of timestamps lies in the window."""
        condition = fn.lit(True)
        if self.since_ms is not None:
            condition = condition & (fn.unix_millis(time) >= self.since_ms)
        if self.until_ms is not None:
            condition = condition & (fn.unix_millis(time) < self.until_ms)
        return condition


ALWAYS: Final = Window()


@dataclass(frozen=True)
class Topics:
    """What a cluster holds now; `options` are those of format("rocketmq") that say how to reach it."""

    options: Mapping[str, str] = field(repr=False)

    def __str__(self) -> str:
        return f"the cluster of {self.options.get('namesrvAddr', '?')}"


@dataclass(frozen=True)
class Store:
    """The directory that holds `commitlog`, live or copied."""

    directory: Path

    @property
    def name(self) -> str:
        """Stands for the broker's name, which its files do not tell."""
        return self.directory.absolute().name

    def __str__(self) -> str:
        return f"the store {self.directory}"


@dataclass(frozen=True)
class Archive:
    """Parquet files with our columns: a lake of the job `archive`, or what somebody wrote with `df.write.parquet`."""

    directory: Path

    def __str__(self) -> str:
        return f"the archive {self.directory}"


Input = Topics | Store | Archive


def messages(
    spark: "SparkSession", source: Input, topics: Sequence[str] | str, columns: Sequence[str], window: Window = ALWAYS
) -> "DataFrame":
    """Rows of some topics, given as names or as one regular expression; only these columns."""
    if isinstance(source, Topics):
        return _of_topics(spark, source, topics, columns, window)
    needed = list(dict.fromkeys([*columns, "topic", "storeTimestamp"]))
    if isinstance(source, Store):
        rows = _of_store(spark, source, topics, needed, window)
    else:
        rows = _of_archive(spark, source, topics, needed, window)
    return rows.where(named(topics) & window.holds(fn.col("storeTimestamp"))).select(*columns)


def named(topics: Sequence[str] | str) -> "Column":
    """Whether a row belongs to one of the topics."""
    if isinstance(topics, str):
        return fn.lit(True) if topics == _EVERYTHING else fn.col("topic").rlike(f"^(?:{topics})$")
    return fn.col("topic").isin(list(topics))


def _of_topics(
    spark: "SparkSession", source: Topics, topics: Sequence[str] | str, columns: Sequence[str], window: Window
) -> "DataFrame":
    reader = spark.read.format("rocketmq").options(**source.options).schema(spark_schema(columns))
    if isinstance(topics, str):
        reader = reader.option("subscribePattern", topics)
    else:
        reader = reader.option("subscribe", ",".join(topics))
    if window.since_ms is not None:
        # A queue without anything that new has nothing to say; the default strategy would be an error.
        reader = reader.option("startingTimestamp", str(window.since_ms))
        reader = reader.option("startingOffsetsByTimestampStrategy", "latest")
    if window.until_ms is not None:
        reader = reader.option("endingTimestamp", str(window.until_ms))
    return reader.load()


def _of_store(
    spark: "SparkSession", source: Store, topics: Sequence[str] | str, columns: Sequence[str], window: Window
) -> "DataFrame":
    if not (source.directory / "commitlog").is_dir():
        raise ConfigError(f"{source.directory} is not a store: it has no folder `commitlog`; give its parent directory")
    reader = spark.read.format("rocketmq-commitlog").schema(spark_schema(columns)).option("brokerName", source.name)
    # Records that nobody asked for are left in the file. The rows are compared once more, by whoever called.
    if not isinstance(topics, str):
        reader = reader.option("topics", ",".join(topics))
    if window.since_ms is not None:
        reader = reader.option("startingTimestamp", str(window.since_ms))
    if window.until_ms is not None:
        reader = reader.option("endingTimestamp", str(window.until_ms))
    return reader.load(str(source.directory))


def _of_archive(
    spark: "SparkSession", source: Archive, topics: Sequence[str] | str, columns: Sequence[str], window: Window
) -> "DataFrame":
    if not source.directory.is_dir():
        raise ConfigError(f"{source.directory} is not a directory: give that of an archive")
    lake = Lake(source.directory)
    if lake.books.is_dir():
        held = [str(lake.root / each.path) for each in lake.state().files.values() if _may_hold(each, topics, window)]
        if not held:
            return spark.createDataFrame([], spark_schema(columns))
        rows = spark.read.parquet(*held)
    elif any(source.directory.rglob("*.parquet")):
        rows = spark.read.parquet(str(source.directory))
    else:
        raise ConfigError(f"{source.directory} has no Parquet files: give the directory of an archive")
    missing = [column for column in columns if column not in rows.columns]
    if missing:
        raise ConfigError(f"{source} has no column {', '.join(missing)}; it has {', '.join(rows.columns)}")
    return rows.select(*columns)


def _may_hold(file: LakeFile, topics: Sequence[str] | str, window: Window) -> bool:
    """Whether a file of the lake can have a row that is asked for: its books know topic and times."""
    is_named = re.fullmatch(topics, file.topic) is not None if isinstance(topics, str) else file.topic in topics
    return (
        is_named
        and (window.since_ms is None or file.last_store_ms >= window.since_ms)
        and (window.until_ms is None or file.first_store_ms < window.until_ms)
    )
