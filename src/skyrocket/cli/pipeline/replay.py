"""`skyrocket pipeline replay`: send messages again."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.pipeline.options import InputOptions, JobClusterOptions, SparkOptions, WindowOptions
from skyrocket.cli.pipeline.running import job_command
from skyrocket.cli.program.options import panel
from skyrocket.errors import ConfigError

if TYPE_CHECKING:
    from skyrocket.pipeline.report import Report

_which = panel("Which messages")
_sending = panel("Sending")


@job_command
def replay(
    topic: Annotated[list[str] | None, typer.Argument(help="Topics to take messages from.")] = None,
    dlq: Annotated[str | None, _which("--dlq", help="The dead letters of this group instead.")] = None,
    group: Annotated[str | None, _which("--group", help="What this group has not consumed yet: its backlog.")] = None,
    *,
    window: WindowOptions,
    key: Annotated[list[str] | None, _which("--key", help="With this key; may be repeated.")] = None,
    tag: Annotated[list[str] | None, _which("--tag", help="With this tag; may be repeated.")] = None,
    listed: Annotated[
        Path | None, _which("--list", help="Only these places: letters.parquet of the job dlq, or a part of it.")
    ] = None,
    to: Annotated[
        str | None,
        _sending(
            "--to",
            help="Topic to send to.  [default with --dlq: the topic that each letter came from]",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[float, _sending(help="Messages per second.")] = 1000.0,
    dry_run: Annotated[bool, _sending("--dry-run", help="Only count.")] = False,
    progress: Annotated[
        Path | None,
        _sending(
            help="File that remembers what was sent.  [default: below ~/.local/state/skyrocket]", show_default=False
        ),
    ] = None,
    again: Annotated[bool, _sending("--again", help="Forget what earlier runs have sent.")] = False,
    place: InputOptions,
    cluster: JobClusterOptions,
    spark: SparkOptions,
) -> "Report":
    """Send messages again, by time, key, tag, group or dead letter, at a bounded rate; run twice, it sends once.

    Findings: messages that were chosen and cannot be sent. Exit code 0: none, 1: it failed, 2: findings.
    """
    from skyrocket.pipeline.jobs import replay as job
    from skyrocket.pipeline.jobs.inputs import Topics
    from skyrocket.pipeline.jobs.replay import inputs
    from skyrocket.pipeline.jobs.replay.progress import default_path, open_progress

    if bool(topic) == bool(dlq):
        raise ConfigError("say what to send again: topics, or --dlq GROUP")
    if dlq is None and to is None:
        raise ConfigError("say where to send them: --to TOPIC")
    if group is not None and (dlq is not None or window.since is not None or place.archive is not None):
        raise ConfigError(
            "--group begins where the group stands, in topics or a store: without --dlq, --since, --archive"
        )
    job.checked_target(to)
    source, times = place.input(cluster), window.window()
    topics = inputs.topics_of(topic or (), dlq)
    sending = job.Sending(cluster.spark_options(), rate)
    in_cluster = isinstance(source, Topics)
    inputs.check_topics(cluster.settings(), topics if in_cluster else (), dlq if in_cluster else None, to)
    # As typed: "2h" of today and of tomorrow are one replay, which goes on where it stopped.
    identity = {
        "from": str(source),
        "topics": " ".join(topics),
        "group": group or "",
        "since": window.since or "",
        "until": window.until or "",
        "keys": " ".join(key or ()),
        "tags": " ".join(tag or ()),
        "list": "" if listed is None else str(listed.absolute()),
        "to": to or "",
        "cluster": cluster.namesrv,
        **({"namespace": cluster.namespace} if cluster.namespace else {}),
    }
    kept = open_progress(progress or default_path(identity, os.environ), identity, again=again)
    with spark.session("replay") as session:
        found = inputs.candidates(session, source, topics, times, group)
        places = None if listed is None else inputs.read_list(session, listed)
        rows = job.chosen(found, job.Choice(key or (), tag or ()), places)
        return job.run(session, rows, to, kept, None if dry_run else sending)
