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
from skyrocket.pipeline.lake.files import of_spark, shown
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
    """Parquet files with our columns: a lake of the job `archive`, or what somebody wrote with `df.write.parquet`.

    A lake may be at a URI.
    """

    directory: Path | str

    def __str__(self) -> str:
        return f"the archive {shown(str(self.directory))}"


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
    reader = spark.read.format("rocketmq").schema(spark_schema(columns))
    return reader.options(**topic_options(source, topics, window)).load()


def topic_options(source: Topics, topics: Sequence[str] | str, window: Window) -> dict[str, str]:
    """What format("rocketmq") is told."""
    options = dict(source.options)
    if isinstance(topics, str):
        options["subscribePattern"] = topics
    else:
        options["subscribe"] = ",".join(topics)
    if window.since_ms is not None:
        # A queue without anything that new has nothing to say; the default strategy would be an error.
        options["startingTimestamp"] = str(window.since_ms)
        options["startingOffsetsByTimestampStrategy"] = "latest"
    if window.until_ms is not None:
        options["endingTimestamp"] = str(window.until_ms)
    return options


def _of_store(
    spark: "SparkSession", source: Store, topics: Sequence[str] | str, columns: Sequence[str], window: Window
) -> "DataFrame":
    reader = spark.read.format("rocketmq-commitlog").schema(spark_schema(columns))
    return reader.options(**store_options(source, topics, window)).load()


def store_options(source: Store, topics: Sequence[str] | str, window: Window) -> dict[str, str]:
    """What format("rocketmq-commitlog") is told; raises ConfigError."""
    if not (source.directory / "commitlog").is_dir():
        raise ConfigError(f"{source.directory} is not a store: it has no folder `commitlog`; give its parent directory")
    options = {"path": str(source.directory), "brokerName": source.name}
    # Records that nobody asked for are left in the file. The rows are compared once more, by whoever called.
    if not isinstance(topics, str):
        options["topics"] = ",".join(topics)
    if window.since_ms is not None:
        options["startingTimestamp"] = str(window.since_ms)
    if window.until_ms is not None:
        options["endingTimestamp"] = str(window.until_ms)
    return options


def _of_archive(
    spark: "SparkSession", source: Archive, topics: Sequence[str] | str, columns: Sequence[str], window: Window
) -> "DataFrame":
    held = archive_files(source, topics, window)
    if held is not None and not held:
        return spark.createDataFrame([], spark_schema(columns))
    location = str(source.directory)
    rows = spark.read.parquet(*([location] if held is None else (of_spark(location, each.path) for each in held)))
    refuse_missing(source, columns, rows.columns)
    return rows.select(*columns)


def archive_files(source: Archive, topics: Sequence[str] | str, window: Window) -> list[LakeFile] | None:
    """The files of a lake that can have such rows; None: no lake, but Parquet somewhere below. Raises ConfigError."""
    lake = Lake(source.directory)
    if not lake.is_remote and not lake.root.is_dir():
        raise ConfigError(f"{lake} is not a directory: give that of an archive")
    if lake.is_begun:
        return [each for each in lake.state().files.values() if _may_hold(each, topics, window)]
    if lake.is_remote:
        raise ConfigError(f"{lake} is not a lake: give the --lake of `skyrocket pipeline archive`")
    if not any(lake.root.rglob("*.parquet")):
        raise ConfigError(f"{lake} has no Parquet files: give the directory of an archive")
    return None


def refuse_missing(source: Archive, columns: Sequence[str], held: Sequence[str]) -> None:
    """Raises ConfigError for a column that the files do not have."""
    missing = [column for column in columns if column not in held]
    if missing:
        raise ConfigError(f"{source} has no column {', '.join(missing)}; it has {', '.join(held)}")


def _may_hold(file: LakeFile, topics: Sequence[str] | str, window: Window) -> bool:
    """Whether a file of the lake can have a row that is asked for: its books know topic and times."""
    is_named = re.fullmatch(topics, file.topic) is not None if isinstance(topics, str) else file.topic in topics
    return (
        is_named
        and (window.since_ms is None or file.last_store_ms >= window.since_ms)
        and (window.until_ms is None or file.first_store_ms < window.until_ms)
    )
