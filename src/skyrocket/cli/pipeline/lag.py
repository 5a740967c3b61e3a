"""`skyrocket pipeline lag`: backlog of consumer groups over time, when it is gone, and what would be needed."""

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skyrocket.cli.cluster_options import (
    DEFAULT_NAMESRV,
    AccessKeyOption,
    NamespaceOption,
    NamesrvOption,
    SecretKeyOption,
    TlsCaOption,
    TlsOption,
)
from skyrocket.cli.options import VerboseOption
from skyrocket.cli.pipeline.options import (
    DEFAULT_MASTER,
    LIMITS,
    AtLeastOption,
    MasterOption,
    OutOption,
    QueueSkewOption,
    SparkConfOption,
    StoreOption,
    spark_settings,
)
from skyrocket.cli.pipeline.running import finish, job_failures_shown, refuse_namespace, target_of
from skyrocket.cli.terminal.moments import seconds_of
from skyrocket.errors import ConfigError

if TYPE_CHECKING:
    from skyrocket.pipeline.jobs.lag import Plan

_SAMPLING: Final = "Sampling"
_SIZING: Final = "Sizing"


def lag(
    group: Annotated[
        list[str] | None, typer.Argument(help="Consumer groups; without one, all that have consumed.")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", help="Of this topic only; may be repeated.", show_default=False)
    ] = None,
    every: Annotated[str, typer.Option("--every", help="Time between samples.", rich_help_panel=_SAMPLING)] = "10s",
    duration: Annotated[
        str, typer.Option("--for", help="How long to sample; 0: once, without rates.", rich_help_panel=_SAMPLING)
    ] = "0",
    max_messages: Annotated[
        int, typer.Option(help="A group may be behind so many in a topic.", rich_help_panel=LIMITS)
    ] = 100_000,
    max_seconds: Annotated[
        float | None,
        typer.Option(help="Or so many seconds.", show_default=False, rich_help_panel=LIMITS),
    ] = None,
    skew_factor: QueueSkewOption = 2.0,
    skew_messages: AtLeastOption = 100,
    cpu_ms: Annotated[
        float | None,
        typer.Option(help="T1: computing per message.", show_default=False, rich_help_panel=_SIZING),
    ] = None,
    io_ms: Annotated[float, typer.Option(help="T2: waiting per message.", rich_help_panel=_SIZING)] = 0.0,
    cores: Annotated[int, typer.Option(help="C: cores of a consumer's host.", rich_help_panel=_SIZING)] = 4,
    threads: Annotated[
        int | None,
        typer.Option(
            help="Threads of a consumer, if not the best number.", show_default=False, rich_help_panel=_SIZING
        ),
    ] = None,
    peak: Annotated[
        float | None,
        typer.Option(
            help="Messages per second at the peak; else as measured.", show_default=False, rich_help_panel=_SIZING
        ),
    ] = None,
    drain_within: Annotated[
        str | None,
        typer.Option(help="The backlog must be gone in this time.", show_default=False, rich_help_panel=_SIZING),
    ] = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Messages are consumed in order.", rich_help_panel=_SIZING)
    ] = False,
    store: StoreOption = None,
    namesrv: NamesrvOption = DEFAULT_NAMESRV,
    access_key: AccessKeyOption = None,
    secret_key: SecretKeyOption = None,
    namespace: NamespaceOption = "",
    tls: TlsOption = False,
    tls_ca: TlsCaOption = None,
    master: MasterOption = DEFAULT_MASTER,
    spark_conf: SparkConfOption = None,
    out: OutOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Backlog of groups in messages and seconds, catch-up time, stuck and skewed queues, and sizing.

    Findings: groups over --max-messages or --max-seconds, stuck queues, skewed queues.
    Exit code 0: none, 1: it failed, 2: findings.
    """
    with job_failures_shown("lag", verbose):
        from skyrocket.pipeline.jobs import lag as job
        from skyrocket.pipeline.jobs.lag import inputs
        from skyrocket.pipeline.jobs.launch import job_session

        target = target_of(namesrv, access_key, secret_key, namespace, tls, tls_ca)
        limits = job.LagLimits(max_messages, max_seconds, skew_factor, skew_messages)
        plan = _plan(cpu_ms, io_ms, cores, threads, peak, drain_within, ordered=ordered)
        every_s, for_s = seconds_of(every), seconds_of(duration)
        if store is not None and for_s:
            raise ConfigError("--for is for a cluster: a store directory shows one moment")
        refuse_namespace(target, "--store", store)
        if store is None:
            found = inputs.sampled(
                target.settings, group or (), topic or (), every_s=every_s, for_s=for_s, on_round=_show_round
            )
            ordered_ones = inputs.ordered_groups(target.settings) if plan is not None else set()
            in_order = ordered_ones.intersection(group) if group else ordered_ones
        with job_session("lag", master, spark_settings(spark_conf)) as spark:
            if store is not None:
                frames = inputs.of_store(spark, store, group or (), topic or ())
                report = job.run(*frames, limits, plan)
            else:
                frames = inputs.of_cluster(spark, target.options, found)
                report = job.run(*frames, limits, plan, in_order)
        finish(report, out)


def _show_round(to_come: int) -> None:
    if sys.stderr.isatty() and to_come:
        typer.echo(f"sample taken, {to_come} to come", err=True)


def _plan(
    cpu_ms: float | None,
    io_ms: float,
    cores: int,
    threads: int | None,
    peak: float | None,
    drain_within: str | None,
    *,
    ordered: bool,
) -> "Plan | None":
    from skyrocket.pipeline.jobs.lag import Plan
    from skyrocket.pipeline.jobs.lag.sizing import Handling

    if cpu_ms is None:
        if io_ms or threads or peak or drain_within or ordered:
            raise ConfigError("sizing needs --cpu-ms, the milliseconds of computing that a message takes")
        return None
    drain_s = None if drain_within is None else seconds_of(drain_within)
    return Plan(Handling(cpu_ms, io_ms, cores, threads), peak, drain_s, ordered)
