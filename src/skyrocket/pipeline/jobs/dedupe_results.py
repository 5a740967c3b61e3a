"""Where clean records go: to Parquet, to a topic, once or as a stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

from skyrocket.columns.schema import COLUMNS
from skyrocket.errors import ConfigError
from skyrocket.model import property_names as names
from skyrocket.pipeline.durable_files import digest
from skyrocket.pipeline.jobs.business_key import check_key, columns_for
from skyrocket.pipeline.jobs.dedupe import NEEDED_COLUMNS, PLACE, Keep, clean, first_within, keyed, ranked, run
from skyrocket.pipeline.jobs.inputs import Input, Topics, Window, messages
from skyrocket.pipeline.report import Report
from skyrocket.pipeline.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DROPPED: Final = sorted({*names.RESERVED, names.SHARDING_KEY})


@dataclass(frozen=True)
class Goal:
    """Where to; neither is a mere report."""

    parquet: Path | None
    topic: str | None
    options: Mapping[str, str]  # of format("rocketmq"): which cluster
    records: str = ""  # where is remembered what was sent to the topic

    @property
    def is_report_alone(self) -> bool:
        return self.parquet is None and self.topic is None


@dataclass(frozen=True)
class Flow:
    """How a stream runs."""

    within: str
    checkpoint: Path | None
    once: bool


def as_outgoing(records: "DataFrame") -> "DataFrame":
    """Records as the sink takes them; each is the same message however often it is sent."""
    kept = fn.map_filter(fn.coalesce("properties", fn.expr("map()")), lambda name, _: ~name.isin(_DROPPED))
    return records.select(
        "body",
        fn.nullif(fn.trim("keys"), fn.lit("")).alias("keys"),
        fn.nullif(fn.trim("tags"), fn.lit("")).alias("tags"),
        fn.col("properties")[names.SHARDING_KEY].alias("shardingKey"),
        kept.cast("map<string,string>").alias("properties"),
        fn.concat_ws("/", *PLACE).alias("messageId"),
    )


def job_name(rows: "DataFrame", to: str, by: str, keep: Keep) -> str:
    """Equal for equal messages: a job that runs again over them has nothing to send."""
    extent = rows.groupBy(*PLACE[:3]).agg(fn.min("queueOffset"), fn.max("queueOffset"), fn.count("*")).collect()
    return digest({"to": to, "by": by, "keep": keep, "messages": str(sorted(map(tuple, extent)))})


def run_batch(
    spark: "SparkSession", source: Input, topics: Sequence[str], window: Window, by: str, keep: Keep, goal: Goal
) -> Report:
    """Read, rank, write what stays, report what goes."""
    check(topics, by, goal)
    columns = NEEDED_COLUMNS if goal.is_report_alone else tuple(COLUMNS)
    wanted = list(dict.fromkeys([*columns, *columns_for(by)]))
    rows = ranked(keyed(messages(spark, source, topics, wanted, window), by), keep).cache()
    try:
        if goal.parquet is not None:
            clean(rows).write.mode("overwrite").parquet(str(goal.parquet))
        if goal.topic is not None:
            writer = as_outgoing(clean(rows)).write.format("rocketmq").mode("append").options(**goal.options)
            name = job_name(rows, goal.topic, by, keep)
            writer.option("topic", goal.topic).option("jobId", name).option("checkpointLocation", goal.records).save()
        return run(rows)
    finally:
        rows.unpersist()


def check_stream(source: Input, window: Window, keep: Keep, goal: Goal, flow: Flow) -> None:
    """Raises ConfigError for what a stream needs or cannot do."""
    if keep == "latest":
        raise ConfigError("--stream keeps the first record of a key: the latest is known only when a stream ends")
    if not isinstance(source, Topics):
        raise ConfigError("--stream reads topics of a cluster: leave out --store and --archive")
    if window.until_ms is not None or window.since_ms is not None:
        raise ConfigError("--stream begins at the first message that is there: leave out --since and --until")
    if (goal.parquet is None) == (goal.topic is None):
        raise ConfigError("--stream writes to one place: give --to-parquet or --to-topic")
    if flow.checkpoint is None:
        raise ConfigError("--stream needs --checkpoint DIR, where it keeps its progress")


def run_stream(spark: "SparkSession", source: Input, topics: Sequence[str], by: str, goal: Goal, flow: Flow) -> None:
    """Until it is stopped, or (once) until all that is there is done."""
    assert isinstance(source, Topics)
    assert flow.checkpoint is not None
    check(topics, by, goal)
    reader = spark.readStream.format("rocketmq").schema(spark_schema()).options(**source.options)
    arriving = reader.option("subscribe", ",".join(topics)).option("startingOffsets", "earliest").load()
    records = first_within(arriving, by, flow.within)
    if goal.topic is not None:
        writer = as_outgoing(records).writeStream.format("rocketmq").options(**goal.options).option("topic", goal.topic)
    else:
        writer = records.writeStream.format("parquet").option("path", str(goal.parquet))
    writer = writer.outputMode("append").option("checkpointLocation", str(flow.checkpoint))
    query = (
        writer.trigger(availableNow=True).start() if flow.once else writer.trigger(processingTime="1 second").start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()


def check(topics: Sequence[str], by: str, goal: Goal) -> None:
    """Raises ConfigError for a wrong key or target; needs no Spark, so that nobody waits for it first."""
    check_key(by)
    if goal.topic is not None and goal.topic in topics:
        raise ConfigError(f"--to-topic {goal.topic} is also read: clean records would become duplicates there")
