"""`skyrocket pipeline trace`: latencies, retries, slow consumers, hot keys and queue skew from message traces."""

from functools import cache
from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.pipeline.options import (
    AtLeastOption,
    EngineOptions,
    InputOptions,
    JobClusterOptions,
    QueueSkewOption,
    SparkOptions,
    WindowOptions,
    limits_panel,
)
from skyrocket.cli.pipeline.running import job_command

if TYPE_CHECKING:
    from skyrocket.pipeline.report import Report


@job_command
def trace(
    trace_topic: Annotated[str, typer.Option("--trace-topic", help="Where clients leave traces.")] = (
        "RMQ_SYS_TRACE_TOPIC"
    ),
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", help="Read this topic as well: its brokers' store times and its queues; may be repeated."
        ),
    ] = None,
    *,
    window: WindowOptions,
    slow_factor: Annotated[float, limits_panel(help="A client's p90 against the others of its group.")] = 3.0,
    slow_ms: Annotated[float, limits_panel(help="And at least this long.")] = 10.0,
    hot_share: Annotated[float, limits_panel(help="Share of a topic with one key.")] = 0.2,
    hot_count: AtLeastOption = 100,
    skew_factor: QueueSkewOption = 2.0,
    skew_count: AtLeastOption = 100,
    place: InputOptions,
    cluster: JobClusterOptions,
    engine: EngineOptions,
    spark: SparkOptions,
) -> "Report":
    """Latency from send to consumed, retries, slow consumers, hot keys, queue skew: from the trace topic.

    Findings: slow consumers, hot keys, skewed queues, unreadable traces.
    Exit code 0: none, 1: it failed, 2: findings.
    """
    from skyrocket.pipeline.jobs import trace as job
    from skyrocket.pipeline.jobs.inputs import Topics, messages
    from skyrocket.pipeline.jobs.local import trace as local
    from skyrocket.pipeline.jobs.local.reading import LocalRead

    source, times = place.input(cluster), window.window()
    if isinstance(source, Topics):
        job.check_traced(cluster.settings(), trace_topic)
    limits = job.TraceLimits(slow_factor, slow_ms, hot_share, hot_count, skew_factor, skew_count)
    reads = [LocalRead(source, [trace_topic], job.TRACE_COLUMNS, times)]
    reads += [LocalRead(source, topic, job.MESSAGE_COLUMNS, times)] if topic else []
    amount = cache(lambda: reads[0].amount.with_more(each.amount for each in reads[1:]))
    if engine.is_local(spark, amount):
        rows = [read.table() for read in reads]
        return engine.said(local.run(rows[0], rows[1] if topic else None, limits), amount())
    with spark.session("trace") as session:
        traces = messages(session, source, [trace_topic], job.TRACE_COLUMNS, times)
        traced = messages(session, source, topic, job.MESSAGE_COLUMNS, times) if topic else None
        return job.run(traces, traced, limits)
