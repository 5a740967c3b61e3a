"""`audit`: log ↔ queues ↔ index ↔ consumer offsets, and messages that are there twice. Reads only.

    audit.run(spark, Path("store"))

The log is compared with queues and index in both directions by tasks over parts of the files. A live store may be
audited: what was stored in the last minute is not expected in the other files yet.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import functions as fn

from skyrocket.clock import SystemClock
from skyrocket.format.config_files import CONSUMER_OFFSETS
from skyrocket.format.dispatch_claims import QueueName
from skyrocket.pipeline.audit.findings import KINDS, Finding, Findings, table
from skyrocket.pipeline.audit.index_files import find_index_files
from skyrocket.pipeline.audit.log_task import LogOutcome, LogTask, audit_split, step
from skyrocket.pipeline.audit.queue_task import QueueOutcome, audit_queue_file, queue_tasks
from skyrocket.pipeline.commit_log.log_files import LogFile, find_log_files
from skyrocket.pipeline.commit_log.splits import Bounds, gaps, plan
from skyrocket.pipeline.jobs.business_key import columns_for, key_column
from skyrocket.pipeline.jobs.launch import in_tasks
from skyrocket.pipeline.rebuild.rules import RebuildRules, rules_for
from skyrocket.pipeline.report import Plot, Report
from skyrocket.pipeline.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPLIT_BYTES: Final = 256 << 20
SETTLE_SECONDS: Final = 60
MOST_REPEATED: Final = 1000
UNIQUE_ID: Final = "uniqKey"


@dataclass(frozen=True)
class AuditRules:
    """What the broker was told, and what counts as the same message."""

    rebuild: RebuildRules = RebuildRules()
    settle_seconds: int = SETTLE_SECONDS
    business_key: str | None = None  # as `jobs/business_key` reads it


USUAL: Final = AuditRules()


class QueueRange(NamedTuple):
    """Queue offsets that a queue has, end exclusive."""

    begin: int
    end: int


T = TypeVar("T")
R = TypeVar("R")


class Worker(Protocol):
    """Who works through the tasks of an audit: Spark, or one process (jobs/local/audit.py)."""

    def tasks(self, items: Sequence[T], task: Callable[[T], R]) -> list[R]:
        """The results, in order."""
        ...

    def repeated(self, store: Path, spec: str, most: int) -> list[dict[str, Any]]:
        """Topics and keys that more than one message has, how many, and the first and last place."""
        ...


class OnSpark:
    """A Spark task takes one item, or many where there are many: most queue files are small."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark

    def tasks(self, items: Sequence[T], task: Callable[[T], R]) -> list[R]:
        return in_tasks(self._spark, items, task, 4 * self._spark.sparkContext.defaultParallelism)

    def repeated(self, store: Path, spec: str, most: int) -> list[dict[str, Any]]:
        rows = repeated(_messages(self._spark, store, key_columns(spec)), spec).limit(most).collect()
        return [row.asDict() for row in rows]


def run(spark: "SparkSession", store: Path, rules: AuditRules = USUAL, split_bytes: int = SPLIT_BYTES) -> Report:
    """Compare everything with everything; every difference is a finding."""
    return compared(OnSpark(spark), store, rules, split_bytes)


def compared(worker: Worker, store: Path, rules: AuditRules, split_bytes: int) -> Report:
    """The report of an audit, whoever works."""
    # First of all: a topic that is made while we look has its queue before a group has an offset there.
    offsets = _consumer_offsets(store)
    log = find_log_files(str(store))
    findings = Findings()
    splits = worker.tasks(_log_tasks(store, log, rules, split_bytes), audit_split)
    queues = worker.tasks(queue_tasks(store, log), audit_queue_file)
    for found in [*(each.findings for each in splits), *(each.findings for each in queues)]:
        findings.merge(found)
    for gap in gaps(log):
        detail = f"{gap.end - gap.begin} bytes of the log are missing: there is no file for them"
        findings.add(Finding("damaged", physical_offset=gap.base_offset + gap.begin, detail=detail))
    _add_all(findings, steps_between(splits))
    _add_all(findings, compare_offsets(offsets, queue_ranges(queues)))
    for kind, spec in (("same-id", UNIQUE_ID), ("same-key", rules.business_key)):
        if spec is not None:
            rows = worker.repeated(store, spec, MOST_REPEATED)
            _add_all(findings, (Finding(kind, str(row["topic"]), detail=_repetition(row)) for row in rows))
    return _report(store, findings, splits, queues, has_index=(store / "index").is_dir())


def _log_tasks(store: Path, log: Sequence[LogFile], rules: AuditRules, split_bytes: int) -> list[LogTask]:
    rebuild = rules_for(store, rules.rebuild)
    settled_ms = SystemClock().now_ms() - rules.settle_seconds * 1000
    index = find_index_files(store, rebuild.index_slots)
    splits = plan(log, (), Bounds(), split_bytes, None)
    return [LogTask(str(store), split, rebuild, index, settled_ms) for split in splits]


def steps_between(splits: Sequence[LogOutcome]) -> Iterable[Finding]:
    """The order of queue offsets from one split to the next, which no task sees."""
    last: dict[QueueName, int] = {}
    for outcome in splits:
        for part in outcome.parts:
            before = last.get(part.queue)
            if before is not None and part.first != before + 1:
                yield step(part.queue, before, part.first, part.first_physical)
            last[part.queue] = part.last


def queue_ranges(queues: Iterable[QueueOutcome]) -> dict[tuple[str, int], QueueRange]:
    """What all files of a queue hold together."""
    found: dict[tuple[str, int], QueueRange] = {}
    for outcome in queues:
        name = (outcome.topic, outcome.queue_id)
        if outcome.begin is not None and outcome.end is not None:
            known = found.get(name, QueueRange(outcome.begin, outcome.end))
            found[name] = QueueRange(min(known.begin, outcome.begin), max(known.end, outcome.end))
    return found


def compare_offsets(
    offsets: Mapping[str, Mapping[int, int]], queues: Mapping[tuple[str, int], QueueRange]
) -> Iterable[Finding]:
    """What the file of consumer offsets says against what there is; keys are topic@group."""
    for key, by_queue in offsets.items():
        topic, _, group = key.partition("@")  # a broadcasting group has a third part, which says so
        for queue_id, offset in by_queue.items():
            queue = queues.get((topic, queue_id))
            place = (topic, queue_id, offset)
            if queue is None:
                if offset > 0:
                    yield Finding("orphaned-offset", *place, detail=f"group {group}: the queue has no files")
            elif offset > queue.end:
                yield Finding("offset-ahead", *place, detail=f"group {group}: the queue ends at {queue.end}")
            elif offset < queue.begin:
                missed = queue.begin - offset
                yield Finding(
                    "offset-behind", *place, detail=f"group {group}: begins at {queue.begin}, {missed} missed"
                )


def repeated(messages: "DataFrame", spec: str) -> "DataFrame":
    """Keys that more than one message of a topic has, the most repeated first."""
    return (
        messages.withColumn("key", key_column(spec))
        .where(fn.col("key").isNotNull())
        .groupBy("topic", "key")
        .agg(
            fn.count("*").alias("messages"),
            fn.min("commitLogOffset").alias("first"),
            fn.max("commitLogOffset").alias("last"),
        )
        .where(fn.col("messages") > 1)
        .orderBy(fn.desc("messages"), "topic", "key")
    )


def key_columns(spec: str) -> list[str]:
    """What must be read to find messages with the same key."""
    return list(dict.fromkeys(["topic", "commitLogOffset", "sysFlag", *columns_for(spec)]))


def _messages(spark: "SparkSession", store: Path, columns: Sequence[str]) -> "DataFrame":
    """Messages that consumers see for the first time: transactions and retries keep the id through several records."""
    reader = spark.read.format("rocketmq-commitlog").option("onDamage", "report").schema(spark_schema(columns))
    internal = fn.col("topic").rlike("^(?i:rmq_sys_|%RETRY%|SCHEDULE_TOPIC_XXXX$|TRANS_CHECK_MAX_TIME_TOPIC$)")
    return reader.load(str(store)).where((fn.col("sysFlag").bitwiseAND(4) == 0) & ~internal)


def _repetition(row: Mapping[str, object]) -> str:
    return f"{row['messages']} messages with {row['key']!r}, at physical offsets {row['first']} … {row['last']}"


def _consumer_offsets(store: Path) -> Mapping[str, Mapping[int, int]]:
    path = store / "config" / "consumerOffset.json"
    return CONSUMER_OFFSETS.decode(path.read_bytes()).offsets if path.exists() else {}


def _add_all(findings: Findings, found: Iterable[Finding]) -> None:
    for finding in found:
        findings.add(finding)


def _report(
    store: Path, findings: Findings, splits: Sequence[LogOutcome], queues: Sequence[QueueOutcome], *, has_index: bool
) -> Report:
    counts = [(kind, findings.counts[kind], KINDS[kind]) for kind in KINDS]
    summary = {
        "records": sum(each.records for each in splits),
        "bytes": sum(each.size for each in splits),
        "queues": len({(each.topic, each.queue_id) for each in queues}),
        "entries": sum(each.entries for each in queues),
        "expiredEntries": sum(each.expired for each in queues),
        "findings": findings.total,
    }
    names = ("kind", "count", "meaning")
    kinds = pa.Table.from_pylist([dict(zip(names, each, strict=True)) for each in counts])
    shown = [each for each in counts if each[1]]
    plots = [
        Plot(
            "Findings by kind", "bar", [each[0] for each in shown], {"findings": [float(each[1]) for each in shown]}, ""
        )
    ]
    return Report(
        f"Audit of {store}",
        {"audit": pa.Table.from_pylist([summary]), "kinds": kinds, "findings": table(findings)},
        plots if shown else [],
        findings.total,
        [] if has_index else ["the store has no index: it was not compared"],
    )
