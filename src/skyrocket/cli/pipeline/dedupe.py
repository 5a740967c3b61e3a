"""`skyrocket pipeline dedupe`: one record per business key."""

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.pipeline.options import InputOptions, JobClusterOptions, SparkOptions, WindowOptions
from skyrocket.cli.pipeline.running import job_command
from skyrocket.cli.program.options import panel

if TYPE_CHECKING:
    from skyrocket.pipeline.report import Report

_result = panel("The clean records")
_stream = panel("As a stream")


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
        Path | None, _result(help="Write them to this directory; one of an earlier run is replaced.")
    ] = None,
    to_topic: Annotated[str | None, _result(help="Send them to this topic.")] = None,
    dry_run: Annotated[bool, _result("--dry-run", help="Only report.")] = False,
    stream: Annotated[bool, _stream("--stream", help="Go on with what comes: first record within --within.")] = False,
    within: Annotated[str, _stream(help="A repetition comes at most this much later.")] = "10 minutes",
    checkpoint: Annotated[
        Path | None, _stream(help="Where is kept what was sent.  [without --stream: below ~/.local/state/skyrocket]")
    ] = None,
    once: Annotated[bool, _stream("--once", help="End when all that is there now is done.")] = False,
    place: InputOptions,
    cluster: JobClusterOptions,
    spark: SparkOptions,
) -> "Report | None":
    """The latest or first record per business key, as a table or topic, and the duplicates as a table.

    Findings: duplicates. Exit code 0: none, 1: it failed, 2: findings.
    """
    from skyrocket.pipeline.durable_files import state_directory
    from skyrocket.pipeline.jobs import dedupe_results

    source, times = place.input(cluster), window.window()
    records = str(checkpoint or state_directory(os.environ) / "dedupe")
    wanted = (None, None) if dry_run else (to_parquet, to_topic)
    goal = dedupe_results.Goal(*wanted, cluster.spark_options(), records)
    dedupe_results.check(topic, by, goal)
    if stream:
        # A stream writes until it is stopped: it has no report, so no findings.
        flow = dedupe_results.Flow(within, checkpoint, once)
        dedupe_results.check_stream(source, times, keep.value, goal, flow)
        with spark.session("dedupe") as session:
            dedupe_results.run_stream(session, source, topic, by, goal, flow)
        return None
    with spark.session("dedupe") as session:
        return dedupe_results.run_batch(session, source, topic, times, by, keep.value, goal)
