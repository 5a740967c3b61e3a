"""`skyrocket pipeline trace`: latencies, retries, slow consumers, hot keys and queue skew from message traces."""

from typing import Annotated

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
    ArchiveOption,
    AtLeastOption,
    MasterOption,
    OutOption,
    QueueSkewOption,
    SinceOption,
    SparkConfOption,
    StoreOption,
    UntilOption,
    moment_ms,
    spark_settings,
)
from skyrocket.cli.pipeline.running import finish, input_of, job_failures_shown, target_of


def trace(
    trace_topic: Annotated[str, typer.Option("--trace-topic", help="Where clients leave traces.")] = (
        "RMQ_SYS_TRACE_TOPIC"
    ),
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            help="Read this topic as well: its brokers' store times and its queues; may be repeated.",
            show_default=False,
        ),
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    slow_factor: Annotated[
        float, typer.Option(help="A client's p90 against the others of its group.", rich_help_panel=LIMITS)
    ] = 3.0,
    slow_ms: Annotated[float, typer.Option(help="And at least so long.", rich_help_panel=LIMITS)] = 10.0,
    hot_share: Annotated[float, typer.Option(help="Share of a topic with one key.", rich_help_panel=LIMITS)] = 0.2,
    hot_count: AtLeastOption = 100,
    skew_factor: QueueSkewOption = 2.0,
    skew_count: AtLeastOption = 100,
    store: StoreOption = None,
    archive: ArchiveOption = None,
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
    """Latency from send to consumed, retries, slow consumers, hot keys, queue skew: from the trace topic.

    Findings: slow consumers, hot keys, skewed queues, unreadable traces.
    Exit code 0: none, 1: it failed, 2: findings.
    """
    with job_failures_shown("trace", verbose):
        from skyrocket.pipeline.jobs import trace as job
        from skyrocket.pipeline.jobs.inputs import Window, messages
        from skyrocket.pipeline.jobs.launch import job_session

        source = input_of(target_of(namesrv, access_key, secret_key, namespace, tls, tls_ca), store, archive)
        window = Window(moment_ms(since), moment_ms(until))
        limits = job.TraceLimits(slow_factor, slow_ms, hot_share, hot_count, skew_factor, skew_count)
        with job_session("trace", master, spark_settings(spark_conf)) as spark:
            traces = messages(spark, source, [trace_topic], job.TRACE_COLUMNS, window)
            traced = messages(spark, source, topic, job.MESSAGE_COLUMNS, window) if topic else None
            report = job.run(traces, traced, limits)
        finish(report, out)
