"""`skyrocket pipeline lag`: backlog of consumer groups over time, when it is gone, and what would be needed."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.pipeline.options import (
    AtLeastOption,
    EngineOptions,
    JobClusterOptions,
    QueueSkewOption,
    SparkOptions,
    StoreOption,
    limits_panel,
)
from skyrocket.cli.pipeline.running import job_command
from skyrocket.cli.program.moments import seconds_of
from skyrocket.cli.program.options import panel
from skyrocket.errors import ConfigError

if TYPE_CHECKING:
    from skyrocket.pipeline.jobs.lag import Plan
    from skyrocket.pipeline.report import Report

_sampling = panel("Sampling")
_sizing = panel("Sizing")


@dataclass(frozen=True)
class SizingOptions:
    """How many consumers would be needed."""

    cpu_ms: Annotated[float | None, _sizing(help="T1: computing per message.")] = None
    io_ms: Annotated[float, _sizing(help="T2: waiting per message.")] = 0.0
    cores: Annotated[int, _sizing(help="C: cores of a consumer's host.")] = 4
    threads: Annotated[int | None, _sizing(help="Threads of a consumer, if not the best number.")] = None
    peak: Annotated[float | None, _sizing(help="Messages per second at the peak; else as measured.")] = None
    drain_within: Annotated[str | None, _sizing(help="The backlog must be gone in this time.")] = None
    ordered: Annotated[bool, _sizing("--ordered", help="Messages are consumed in order.")] = False

    def plan(self) -> "Plan | None":
        """None when it was not asked for; raises ConfigError."""
        from skyrocket.pipeline.jobs.lag import Plan
        from skyrocket.pipeline.jobs.lag.sizing import Handling

        if self.cpu_ms is None:
            if self.io_ms or self.threads or self.peak or self.drain_within or self.ordered:
                raise ConfigError("sizing needs --cpu-ms, the milliseconds of computing that a message takes")
            return None
        drain_s = None if self.drain_within is None else seconds_of(self.drain_within)
        return Plan(Handling(self.cpu_ms, self.io_ms, self.cores, self.threads), self.peak, drain_s, self.ordered)


@job_command
def lag(
    group: Annotated[
        list[str] | None, typer.Argument(help="Consumer groups; without one, all that have consumed.")
    ] = None,
    topic: Annotated[list[str] | None, typer.Option("--topic", help="Of this topic only; may be repeated.")] = None,
    every: Annotated[str, _sampling("--every", help="Time between samples.")] = "10s",
    duration: Annotated[str, _sampling("--for", help="How long to sample; 0: once, without rates.")] = "0",
    max_messages: Annotated[int, limits_panel(help="A group may be behind by this many in a topic.")] = 100_000,
    max_seconds: Annotated[float | None, limits_panel(help="Or by this many seconds.")] = None,
    skew_factor: QueueSkewOption = 2.0,
    skew_messages: AtLeastOption = 100,
    *,
    sizing: SizingOptions,
    store: StoreOption = None,
    cluster: JobClusterOptions,
    engine: EngineOptions,
    spark: SparkOptions,
) -> "Report":
    """Backlog of groups in messages and seconds, catch-up time, stuck and skewed queues, and sizing.

    Findings: groups over --max-messages or --max-seconds, stuck queues, skewed queues.
    Exit code 0: none, 1: it failed, 2: findings.
    """
    from skyrocket.pipeline.jobs import lag as job
    from skyrocket.pipeline.jobs.lag import inputs
    from skyrocket.pipeline.jobs.local import lag as local
    from skyrocket.pipeline.jobs.local.lag_inputs import ClusterRead, StoreRead

    settings = cluster.settings()
    limits = job.LagLimits(max_messages, max_seconds, skew_factor, skew_messages)
    plan = sizing.plan()
    every_s, for_s = seconds_of(every), seconds_of(duration)
    if store is not None and for_s:
        raise ConfigError("--for is for a cluster: a store directory shows one moment")
    cluster.refuse_namespace("--store", store)
    if store is not None:
        read = StoreRead(store, group or (), topic or ())
        if engine.is_local(spark, lambda: read.amount):
            return engine.said(local.run(*read.tables(), limits, plan), read.amount)
        with spark.session("lag") as session:
            return job.run(*inputs.of_store(session, store, group or (), topic or ()), limits, plan)
    found = inputs.sampled(settings, group or (), topic or (), every_s=every_s, for_s=for_s, on_round=_show_round)
    ordered_ones = inputs.ordered_groups(settings) if plan is not None else set()
    in_order = ordered_ones.intersection(group) if group else ordered_ones
    stands = ClusterRead(cluster.spark_options(), found)
    if engine.is_local(spark, lambda: stands.amount):
        return engine.said(local.run(*stands.tables(), limits, plan, in_order), stands.amount)
    with spark.session("lag") as session:
        return job.run(*inputs.of_cluster(session, cluster.spark_options(), found), limits, plan, in_order)


def _show_round(to_come: int) -> None:
    if sys.stderr.isatty() and to_come:
        typer.echo(f"sample taken, {to_come} to come", err=True)
