"""`skyrocket pipeline dedupe`: one record per business key."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

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

_RESULT: Final = "The clean records"
_STREAM: Final = "As a stream"


class KeepWord(StrEnum):
    """Which of several records stays."""

    FIRST = "first"
    LATEST = "latest"


def dedupe(
    topic: Annotated[list[str], typer.Argument(help="Topics; each is looked at by itself.", show_default=False)],
    by: Annotated[
        str, typer.Option("--by", help="The key: keys, uniqKey, property:NAME, json:$.path, or another column.")
    ] = "keys",
    keep: Annotated[KeepWord, typer.Option(help="Which record stays.")] = KeepWord.LATEST,
    since: SinceOption = None,
    until: UntilOption = None,
    to_parquet: Annotated[
        Path | None,
        typer.Option(
            help="Write them to this directory; one of an earlier run is replaced.",
            show_default=False,
            rich_help_panel=_RESULT,
        ),
    ] = None,
    to_topic: Annotated[
        str | None, typer.Option(help="Send them to this topic.", show_default=False, rich_help_panel=_RESULT)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report.", rich_help_panel=_RESULT)] = False,
    stream: Annotated[
        bool,
        typer.Option("--stream", help="Go on with what comes: first record within --within.", rich_help_panel=_STREAM),
    ] = False,
    within: Annotated[
        str, typer.Option(help="A repetition comes at most so much later.", rich_help_panel=_STREAM)
    ] = "10 minutes",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Where is kept what was sent.  [without --stream: below ~/.local/state/skyrocket]",
            show_default=False,
            rich_help_panel=_STREAM,
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="End when all that is there now is done.", rich_help_panel=_STREAM)
    ] = False,
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
    """The latest or first record per business key, as a table or topic, and the duplicates as a table.

    Findings: duplicates. Exit code 0: none, 1: it failed, 2: findings.
    """
    with job_failures_shown("dedupe", verbose):
        from skyrocket.pipeline.jobs import dedupe as job
        from skyrocket.pipeline.jobs import dedupe_results
        from skyrocket.pipeline.jobs.inputs import Window
        from skyrocket.pipeline.jobs.launch import job_session
        from skyrocket.pipeline.jobs.remembered import state_directory

        target = target_of(namesrv, access_key, secret_key, namespace, tls, tls_ca)
        source = input_of(target, store, archive)
        window = Window(moment_ms(since), moment_ms(until))
        records = str(checkpoint or state_directory(os.environ) / "dedupe")
        wanted = (None, None) if dry_run else (to_parquet, to_topic)
        goal = dedupe_results.Goal(*wanted, target.options, records)
        if stream:
            # A stream writes until it is stopped: it has no report, so no findings.
            flow = dedupe_results.Flow(within, checkpoint, once)
            job.check_streaming(keep.value)
            dedupe_results.check_stream(source, window, goal, flow)
            with job_session("dedupe", master, spark_settings(spark_conf)) as spark:
                dedupe_results.run_stream(spark, source, topic, by, goal, flow)
            return
        with job_session("dedupe", master, spark_settings(spark_conf)) as spark:
            report = dedupe_results.run_batch(spark, source, topic, window, by, keep.value, goal)
        finish(report, out)
