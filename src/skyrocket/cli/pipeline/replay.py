"""`skyrocket pipeline replay`: send messages again."""

import os
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
from skyrocket.errors import ConfigError

_WHICH: Final = "Which messages"
_SENDING: Final = "Sending"


def replay(
    topic: Annotated[list[str] | None, typer.Argument(help="Topics to take messages from.")] = None,
    dlq: Annotated[
        str | None,
        typer.Option(
            "--dlq", help="The dead letters of this group instead.", show_default=False, rich_help_panel=_WHICH
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            help="What this group has not consumed yet: its backlog.",
            show_default=False,
            rich_help_panel=_WHICH,
        ),
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", help="With this key; may be repeated.", show_default=False, rich_help_panel=_WHICH),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", help="With this tag; may be repeated.", show_default=False, rich_help_panel=_WHICH),
    ] = None,
    listed: Annotated[
        Path | None,
        typer.Option(
            "--list",
            help="Only these places: letters.parquet of the job dlq, or a part of it.",
            show_default=False,
            rich_help_panel=_WHICH,
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="Topic to send to.  [default with --dlq: the topic that each letter came from]",
            show_default=False,
            rich_help_panel=_SENDING,
        ),
    ] = None,
    rate: Annotated[float, typer.Option(help="Messages per second.", rich_help_panel=_SENDING)] = 1000.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.", rich_help_panel=_SENDING)] = False,
    progress: Annotated[
        Path | None,
        typer.Option(
            help="File that remembers what was sent.  [default: below ~/.local/state/skyrocket]",
            show_default=False,
            rich_help_panel=_SENDING,
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Forget what earlier runs have sent.", rich_help_panel=_SENDING)
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
    """Send messages again, by time, key, tag, group or dead letter, at a bounded rate; run twice, it sends once.

    Findings: messages that were chosen and cannot be sent. Exit code 0: none, 1: it failed, 2: findings.
    """
    with job_failures_shown("replay", verbose):
        from skyrocket.pipeline.jobs import replay as job
        from skyrocket.pipeline.jobs.inputs import Window
        from skyrocket.pipeline.jobs.launch import job_session
        from skyrocket.pipeline.jobs.replay import inputs
        from skyrocket.pipeline.jobs.replay.progress import default_path, open_progress

        if bool(topic) == bool(dlq):
            raise ConfigError("say what to send again: topics, or --dlq GROUP")
        if dlq is None and to is None:
            raise ConfigError("say where to send them: --to TOPIC")
        if group is not None and (dlq is not None or since is not None or archive is not None):
            raise ConfigError(
                "--group begins where the group stands, in topics or a store: without --dlq, --since, --archive"
            )
        job.checked_target(to)
        target = target_of(namesrv, access_key, secret_key, namespace, tls, tls_ca)
        source = input_of(target, store, archive)
        topics = inputs.topics_of(topic or (), dlq)
        sending = job.Sending(target.options, rate)
        # As typed: "2h" of today and of tomorrow are one replay, which goes on where it stopped.
        identity = {
            "from": str(source),
            "topics": " ".join(topics),
            "group": group or "",
            "since": since or "",
            "until": until or "",
            "keys": " ".join(key or ()),
            "tags": " ".join(tag or ()),
            "list": "" if listed is None else str(listed.absolute()),
            "to": to or "",
            "cluster": namesrv,
            **({"namespace": namespace} if namespace else {}),
        }
        kept = open_progress(progress or default_path(identity, os.environ), identity, again=again)
        window = Window(moment_ms(since), moment_ms(until))
        with job_session("replay", master, spark_settings(spark_conf)) as spark:
            found = inputs.candidates(spark, source, topics, window, group)
            places = None if listed is None else inputs.read_list(spark, listed)
            rows = job.chosen(found, job.Choice(key or (), tag or ()), places)
            report = job.run(spark, rows, to, kept, None if dry_run else sending)
        finish(report, out)
