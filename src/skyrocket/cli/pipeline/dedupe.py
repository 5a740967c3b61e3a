"""`skyrocket pipeline dedupe`: one record per business key."""

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skyrocket.cli.pipeline.options import InputOptions, JobClusterOptions, SparkOptions, WindowOptions
from skyrocket.cli.pipeline.running import job_command

if TYPE_CHECKING:
    from skyrocket.pipeline.report import Report

_RESULT: Final = "The clean records"
_STREAM: Final = "As a stream"


class KeepWord(StrEnum):
    """Which of several records stays."""

    FIRST = "first"
    LATEST = "latest"


@job_command
def dedupe(
    topic: Annotated[list[str], typer.Argument(help="Topics; each is looked at by itself.", show_default=False)],
    by: Annotated[
        str, typer.Option("--by", help="The key: keys, uniqKey, property:NAME, json:$.path, or another column.")
    ] = "keys",
    keep: Annotated[KeepWord, typer.Option(help="Which record stays.")] = KeepWord.LATEST,
    *,
    window: WindowOptions,
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
    place: InputOptions,
    cluster: JobClusterOptions,
    spark: SparkOptions,
) -> "Report | None":
    """The latest or first record per business key, as a table or topic, and the duplicates as a table.

    Findings: duplicates. Exit code 0: none, 1: it failed, 2: findings.
    """
    from skyrocket.pipeline.durable_files import state_directory
    from skyrocket.pipeline.jobs import dedupe as job
    from skyrocket.pipeline.jobs import dedupe_results

    source, times = place.input(cluster), window.window()
    records = str(checkpoint or state_directory(os.environ) / "dedupe")
    wanted = (None, None) if dry_run else (to_parquet, to_topic)
    goal = dedupe_results.Goal(*wanted, cluster.spark_options(), records)
    if stream:
        # A stream writes until it is stopped: it has no report, so no findings.
        flow = dedupe_results.Flow(within, checkpoint, once)
        job.check_streaming(keep.value)
        dedupe_results.check_stream(source, times, goal, flow)
        with spark.session("dedupe") as session:
            dedupe_results.run_stream(session, source, topic, by, goal, flow)
        return None
    with spark.session("dedupe") as session:
        return dedupe_results.run_batch(session, source, topic, times, by, keep.value, goal)
