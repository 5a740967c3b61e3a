"""`skyrocket pipeline replay`: send messages again, chosen by time, key, tag, group or list, at a bounded rate.

    rows of a topic, store or archive ─▶ chosen ─▶ remaining ─▶ outgoing ─▶ rounds of portions, evenly at `rate`
                                                      ▲                        │
                                                      └── progress file ◀──────┘ after each round

What is sent has the body, keys, tags, sharding key and the application's properties of the original, and says where it
comes from: REPLAY_FROM is topic/broker/queue/offset, REPLAY_ID the original's message id. The message id is a new one,
made of that place, so that a round sent again after a crash is recognised (docs/guides/spark-source-and-sink.md).
Delays are not waited for again. The originals stay where they are.

A finding is a message that was chosen and cannot be sent again.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from skyrocket.clock import Clock, SystemClock
from skyrocket.errors import ConfigError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX, is_system_topic
from skyrocket.pipeline.jobs.replay.progress import ReplayProgress
from skyrocket.pipeline.jobs.replay.rounds import Sending
from skyrocket.pipeline.jobs.replay.sending import send
from skyrocket.pipeline.jobs.replay.steps import counts, numbered, outgoing, refusals, remaining
from skyrocket.pipeline.jobs.tables import table
from skyrocket.pipeline.report import Plot, Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def checked_target(to: str | None) -> None:
    """Raises ConfigError for a topic that applications do not send to."""
    if to is not None and (is_system_topic(to) or to.startswith((RETRY_PREFIX, DLQ_PREFIX))):
        raise ConfigError(f"--to {to} is a topic of the system: choose one of your own")


def run(
    spark: "SparkSession",
    messages: "DataFrame",
    to: str | None,
    progress: ReplayProgress,
    sending: Sending | None,
    clock: Clock | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> Report:
    """Send what earlier runs have not sent; without `sending` only count it (a dry run)."""
    checked_target(to)
    rows = remaining(outgoing(messages, to), spark, progress.next_offsets).cache()
    try:
        tables = {"messages": table(counts(rows)), "refused": table(refusals(rows))}
        planned = sum(tables["messages"]["messages"].to_pylist())
        if sending is not None and planned:
            left = _left(tables["messages"].to_pylist())
            send(spark, numbered(rows), left, progress, sending, clock or SystemClock(), wait)
    finally:
        rows.unpersist()
    verb = "would be sent (dry run: nothing was)" if sending is None else "sent"
    notes = [f"{planned:,} messages {verb}; {progress.sent:,} in all runs of this replay", f"progress: {progress.path}"]
    facts = {"planned": planned, "sentInAllRuns": progress.sent, "dryRun": sending is None}
    found = tables["messages"].to_pylist()
    names_of_queues = [f"{row['topic']} {row['brokerName']}:{row['queueId']}" for row in found]
    series = {"messages": [float(row["messages"]) for row in found]}
    plots = [Plot("Messages by queue", "bar", names_of_queues, series, "messages")]
    return Report("Replay", tables, plots, tables["refused"].num_rows, notes, facts)


def _left(rows: list[dict[str, object]]) -> dict[MessageQueue, int]:
    left: dict[MessageQueue, int] = {}
    for row in rows:
        queue = MessageQueue(str(row["topic"]), str(row["brokerName"]), int(str(row["queueId"])))
        left[queue] = left.get(queue, 0) + int(str(row["messages"]))
    return left
