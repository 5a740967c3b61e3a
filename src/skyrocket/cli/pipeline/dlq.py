"""`skyrocket pipeline dlq`: dead letters by cause. `skyrocket dlq` shows and resends single ones."""

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
    ArchiveOption,
    MasterOption,
    OutOption,
    SinceOption,
    SparkConfOption,
    StoreOption,
    UntilOption,
    moment_ms,
    spark_settings,
)
from skyrocket.cli.pipeline.running import finish, input_of, job_failures_shown, target_of


def dlq(
    group: Annotated[list[str] | None, typer.Argument(help="Consumer groups; without one, all.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    samples: Annotated[int, typer.Option(min=1, help="Letters to show of each cause.")] = 3,
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
    """Dead letters of one or all groups by cause, with samples and a list for replay; never deletes.

    Findings: every dead letter. Exit code 0: none, 1: it failed, 2: findings.
    """
    with job_failures_shown("dlq", verbose):
        from skyrocket.pipeline.jobs import dlq as job
        from skyrocket.pipeline.jobs.inputs import Window, messages
        from skyrocket.pipeline.jobs.launch import job_session

        source = input_of(target_of(namesrv, access_key, secret_key, namespace, tls, tls_ca), store, archive)
        window = Window(moment_ms(since), moment_ms(until))
        with job_session("dlq", master, spark_settings(spark_conf)) as spark:
            topics = job.dead_letter_topics(group or ())
            report = job.run(messages(spark, source, topics, job.MESSAGE_COLUMNS, window), samples)
        finish(report, out)
