"""`skyrocket pipeline lag`: the backlog of groups in messages and in seconds, when it will be gone, and why not.

    samples (who was where, when) ─┬─▶ with_waiting ─▶ backlog, per moment, group and topic
    messages (store times) ────────┘                └─▶ progress, per queue ─▶ outlook, stuck and skewed queues, sizing

The backlog in seconds is the time that the first waiting message of a queue has waited: sampling time less store time.

A finding is a group over one of the limits, a stuck queue, or a skewed queue.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as fn

from skyrocket.errors import ConfigError
from skyrocket.pipeline.jobs.lag.samples import Committed
from skyrocket.pipeline.jobs.lag.sizing import Handling, size
from skyrocket.pipeline.jobs.tables import skewed, table
from skyrocket.pipeline.report import Plot, Report
from skyrocket.pipeline.report.words import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MESSAGE_COLUMNS: Final = ("topic", "brokerName", "queueId", "queueOffset", "storeTimestamp")
_QUEUE: Final = ["topic", "brokerName", "queueId"]
_FLOW: Final = ["group", "topic"]
_MOST_LINES: Final = 8


@dataclass(frozen=True)
class LagLimits:
    """From where on a backlog is a finding."""

    messages: int = 100_000  # of a group in a topic
    seconds: float | None = None
    skew_factor: float = 2.0
    skew_messages: int = 100

    def __post_init__(self) -> None:
        if self.skew_factor < 1:
            raise ConfigError("the factor for skewed queues is at least 1")


@dataclass(frozen=True)
class Plan:
    """What the sizing is asked for."""

    handling: Handling
    peak_rate: float | None = None  # messages per second; None: as measured
    drain_s: float | None = None
    ordered: bool = False  # all groups; else those that are declared so


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def with_waiting(samples: "DataFrame", messages: "DataFrame") -> "DataFrame":
    """Samples with `lag` and `waitedMs`: of the first message at or behind the consumer's offset; null if unknown."""
    stored = messages.select(*_QUEUE, "queueOffset", fn.unix_millis("storeTimestamp").alias("firstMs"))
    least = stored.groupBy(*_QUEUE).agg(fn.min("queueOffset").alias("leastOffset"))
    # Retention may have passed the consumer: then the first that is left waits. An equal join: a backlog is long.
    stands = samples.join(least, _QUEUE).withColumn("queueOffset", fn.greatest("consumerOffset", "leastOffset"))
    firsts = stands.join(stored, [*_QUEUE, "queueOffset"]).select("sampledMs", "group", *_QUEUE, "firstMs")
    lag = fn.col("brokerOffset") - fn.col("consumerOffset")
    # A clock that is behind the broker's has waited no negative time. `greatest` alone would take null for nothing.
    since = fn.col("sampledMs") - fn.col("firstMs")
    waited = fn.when(since.isNotNull(), fn.greatest(since, fn.lit(0)))
    return (
        samples.join(firsts, ["sampledMs", "group", *_QUEUE], "left")
        .withColumn("lag", fn.greatest(lag, fn.lit(0)))
        .withColumn("waitedMs", fn.when(fn.col("lag") == 0, 0).otherwise(waited))
        .drop("firstMs")
    )


def backlog(waiting: "DataFrame") -> "DataFrame":
    """Per moment, group and topic: messages that wait, and for how long the first of them."""
    return (
        waiting.groupBy(fn.timestamp_millis("sampledMs").alias("sampled"), *_FLOW)
        .agg(
            fn.sum("lag").alias("messages"),
            (fn.max("waitedMs") / 1000).alias("seconds"),
            fn.count("*").alias("queues"),
        )
        .orderBy("sampled", *_FLOW)
    )


def progress(waiting: "DataFrame") -> "DataFrame":
    """Per group and queue: the last sample, and how fast both ends moved since the first (null with one sample)."""
    seconds = (fn.max("sampledMs") - fn.min("sampledMs")) / 1000

    def rate(column: str) -> Any:
        moved = fn.max_by(column, "sampledMs") - fn.min_by(column, "sampledMs")
        return fn.try_divide(moved, seconds)

    return waiting.groupBy("group", *_QUEUE).agg(
        *(fn.max_by(name, "sampledMs").alias(name) for name in ("brokerOffset", "consumerOffset", "lag")),
        (fn.max_by("waitedMs", "sampledMs") / 1000).alias("seconds"),
        rate("brokerOffset").alias("arriving"),
        rate("consumerOffset").alias("consuming"),
        fn.min("lag").alias("leastLag"),
        fn.count("*").alias("samples"),
    )


def outlook(queues: "DataFrame") -> "DataFrame":
    """Per group and topic: rates, and the seconds until it has caught up if they stay (null: never, or not known)."""
    gain = fn.col("consuming") - fn.col("arriving")
    catch_up = fn.when(fn.col("messages") == 0, 0.0).when(gain > 0, fn.col("messages") / gain)
    state = (
        fn.when(fn.col("messages") == 0, "caught up")
        .when(fn.col("consuming").isNull(), "one sample: rates unknown")
        .when(fn.col("consuming") <= 0, "stands still")
        .when(gain > 0, "catching up")
        .otherwise("falling behind")
    )
    flows = queues.groupBy(*_FLOW).agg(
        fn.sum("lag").alias("messages"),
        fn.max("seconds").alias("seconds"),
        fn.sum("arriving").alias("arriving"),
        fn.sum("consuming").alias("consuming"),
        fn.count("*").alias("queues"),
    )
    rows = flows.withColumn("catchUpSeconds", catch_up).withColumn("state", state)
    return rows.orderBy(fn.desc("messages"), *_FLOW)


def stuck(queues: pa.Table) -> pa.Table:
    """Of `progress`, queues in which messages waited in every sample and the group did not move; needs two samples."""
    waits = pc.and_(pc.greater(queues["samples"], 1), pc.greater(queues["leastLag"], 0))
    rows = queues.filter(pc.and_(waits, pc.less_equal(queues["consuming"], 0)))
    return rows.select(["group", *_QUEUE, "consumerOffset", "lag", "seconds"]).sort_by([("lag", "descending")])


def over_limits(flows: pa.Table, limits: LagLimits) -> pa.Table:
    """Of `outlook`, groups that are too far behind."""
    too_far = pc.greater(flows["messages"], limits.messages)
    if limits.seconds is not None:
        too_far = pc.or_(too_far, pc.fill_null(pc.greater(flows["seconds"], limits.seconds), False))
    return flows.filter(too_far)


def store_samples(spark: "SparkSession", committed: Collection[Committed], messages: "DataFrame") -> "DataFrame":
    """One sample per committed offset of a store directory, as of its last message; queues end where the log says."""
    offsets = spark.createDataFrame(list(committed), "group string, topic string, queueId int, consumerOffset bigint")
    ends = messages.groupBy(*_QUEUE).agg((fn.max("queueOffset") + 1).alias("brokerOffset"))
    now = messages.agg(fn.max(fn.unix_millis("storeTimestamp")).alias("sampledMs"))
    found = offsets.join(ends, ["topic", "queueId"]).crossJoin(now)
    return found.select("sampledMs", "group", *_QUEUE, "brokerOffset", "consumerOffset")


def offsets_to_read(samples: pa.Table) -> tuple[dict[str, Any], dict[str, Any]]:
    """Starting and ending offsets of the messages at which some group stood while it was behind; empty if none was."""
    starts: dict[str, Any] = {}
    ends: dict[str, Any] = {}
    for row in samples.to_pylist():
        if row["brokerOffset"] <= row["consumerOffset"]:
            continue
        queue = str(row["queueId"])
        begin = starts.setdefault(row["topic"], {}).setdefault(row["brokerName"], {})
        end = ends.setdefault(row["topic"], {}).setdefault(row["brokerName"], {})
        begin[queue] = min(row["consumerOffset"], begin.get(queue, row["consumerOffset"]))
        end[queue] = max(row["consumerOffset"] + 1, end.get(queue, 0))
    return starts, ends


def sizing_table(flows: pa.Table, plan: Plan, ordered: Collection[str]) -> pa.Table:
    """The formulas, applied to each group and topic."""
    rows = []
    for row in flows.to_pylist():
        peak = plan.peak_rate if plan.peak_rate is not None else max(row["arriving"] or 0.0, 0.0)
        is_ordered = plan.ordered or row["group"] in ordered
        found = size(
            peak,
            plan.handling,
            row["queues"],
            ordered=is_ordered,
            backlog=row["messages"],
            drain_s=plan.drain_s,
        )
        rows.append({"group": row["group"], "topic": row["topic"], "ordered": is_ordered, **asdict(found)})
    return pa.Table.from_pylist(rows) if rows else pa.table({"group": pa.array([], pa.string())})


# ── the sentence ─────────────────────────────────────────────────────────────────────────────────────────────────────


def run(
    samples: "DataFrame",
    messages: "DataFrame",
    limits: LagLimits | None = None,
    plan: Plan | None = None,
    ordered: Collection[str] = (),
) -> Report:
    """From samples, and the rows of the messages at which groups stood."""
    limits = limits or LagLimits()
    waiting = with_waiting(samples, messages).cache()
    queues = progress(waiting).cache()
    try:
        flows = table(outlook(queues))
        each = table(queues.orderBy(fn.desc("lag"), "group", *_QUEUE))
        tables = {
            "groups": flows,
            "over_limits": over_limits(flows, limits),
            "stuck_queues": stuck(each),
            "skewed_queues": table(
                skewed(
                    queues.select("group", *_QUEUE, "lag"),
                    _FLOW,
                    "lag",
                    factor=limits.skew_factor,
                    least=limits.skew_messages,
                )
            ),
            "queues": each.drop_columns(["leastLag"]),
            "backlog_over_time": table(backlog(waiting)),
        }
    finally:
        queues.unpersist()
        waiting.unpersist()
    if plan is not None:
        tables["sizing"] = sizing_table(tables["groups"], plan, ordered)
    return report_of(tables)


def report_of(tables: Mapping[str, pa.Table]) -> Report:
    """The same report, whoever made the tables."""
    words = {"groups over the limits": "group over the limits", "stuck queues": "stuck queue"}
    words["skewed queues"] = "skewed queue"
    names = ("over_limits", "stuck_queues", "skewed_queues")
    counts = {many: tables[name].num_rows for name, many in zip(names, words, strict=True)}
    notes = [
        "seconds: how long the first waiting message has waited; rates are messages per second between the samples",
        "findings: " + ", ".join(counted(count, words[many], many) for many, count in counts.items()),
    ]
    if "sizing" in tables:
        notes.append("sizing is the ideal: begin with fewer threads, measure, then raise them")
    rows = tables["backlog_over_time"].to_pylist()
    plots = [
        _over_time("Backlog in messages", rows, "messages", "messages"),
        _over_time("Backlog in seconds", rows, "seconds", "s"),
    ]
    return Report("Consumer backlog", dict(tables), plots, sum(counts.values()), notes, {"counts": counts})


def _over_time(title: str, rows: list[dict[str, Any]], column: str, unit: str) -> Plot:
    """The flows with the largest backlog; a moment without a sample of one is a hole in its line."""
    flows: dict[tuple[str, str], dict[Any, float]] = {}
    for row in rows:
        value = float("nan") if row[column] is None else float(row[column])
        flows.setdefault((row["group"], row["topic"]), {})[row["sampled"]] = value
    moments = sorted({row["sampled"] for row in rows})
    largest = sorted(flows, key=lambda flow: -max(flows[flow].values()))[:_MOST_LINES]
    series = {
        f"{group} ← {topic}": [flows[group, topic].get(m, float("nan")) for m in moments] for group, topic in largest
    }
    return Plot(title, "line", [f"{moment:%H:%M:%S}" for moment in moments], series, unit)
