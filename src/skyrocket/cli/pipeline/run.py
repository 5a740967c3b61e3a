"""`skyrocket pipeline run | check FILE`: user-defined pipelines (docs/guides/pipeline-files.md)."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.pipeline.options import SparkOptions
from skyrocket.cli.pipeline.running import job_failures_shown
from skyrocket.cli.program.cluster import DEFAULT_NAMESRV
from skyrocket.cli.program.lifetime import EXIT_PROBLEMS
from skyrocket.cli.program.options import VerboseOption, with_groups

if TYPE_CHECKING:
    from skyrocket.pipeline.declared.reading import Located
    from skyrocket.pipeline.declared.runner import BatchDone

FileArgument = Annotated[Path, typer.Argument(help="A pipeline: .yml or .py.", show_default=False)]
NamesrvOption = Annotated[
    str | None,
    typer.Option("-n", "--namesrv", help="Name servers, instead of the file's namesrvAddr.", show_default=False),
]


@with_groups
def run(
    file: FileArgument,
    once: Annotated[bool, typer.Option("--once", help="Write what is there now, then end.")] = False,
    check_only: Annotated[bool, typer.Option("--check", help="Only check, as `pipeline check --online`.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON per batch.")] = False,
    namesrv: NamesrvOption = None,
    *,
    spark: SparkOptions,
    verbose: VerboseOption = False,
) -> None:
    """Run the pipeline of a file until SIGTERM or Ctrl-C; batches under way are finished first.

    Exit code 0: stopped, or all written with --once; 1: the file is wrong, or it failed.
    """
    if check_only:
        check(file, online=True, namesrv=namesrv, verbose=verbose)
        return
    with job_failures_shown("run", verbose), _problems_shown():
        from skyrocket.pipeline.declared import load
        from skyrocket.pipeline.declared.frames import prepared
        from skyrocket.pipeline.declared.runner import Runner

        located = load(file)
        pipeline = located.pipeline
        addresses = _name_servers(located, namesrv)
        _check_topics(located, addresses)
        with prepared(located, addresses, spark.master, spark.settings(), shows_phases=True) as found:
            runner = Runner(pipeline, found, addresses, once=once, on_batch=_printed(as_json))
            _stop_on_signals(runner.stop)
            typer.echo(f"{pipeline.name} runs: {', '.join(output.sink.name for output in found)}", err=True)
            runner.run()
            typer.echo(f"{pipeline.name} has stopped", err=True)


def check(
    file: FileArgument,
    online: Annotated[bool, typer.Option("--online", help="Also ask whether the topics exist.")] = False,
    namesrv: NamesrvOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Check the file of a pipeline: keys, types, names, and its SQL against the real schemas; nothing is run.

    Every mistake is a line, FILE:LINE:COLUMN: cause; next step. Exit code 0: it can be run, 1: it cannot.
    """
    with job_failures_shown("check", verbose), _problems_shown():
        from skyrocket.pipeline.declared import load
        from skyrocket.pipeline.declared.frames import prepared

        located = load(file)
        addresses = _name_servers(located, namesrv)
        if online:
            _check_topics(located, addresses, create=False)
        with prepared(located, addresses, "local[1]", {"spark.ui.enabled": "false"}) as found:
            typer.echo(f"{file} can be run: {', '.join(output.sink.name for output in found)}")


@contextlib.contextmanager
def _problems_shown() -> Iterator[None]:
    """A line each and nothing before it, as editors and CI logs want them."""
    from skyrocket.pipeline.declared.problems import PipelineFileError

    try:
        yield
    except PipelineFileError as error:
        for problem in error.problems:
            typer.echo(str(problem), err=True)
        raise typer.Exit(EXIT_PROBLEMS) from error


def _name_servers(located: "Located", given: str | None) -> str:
    return given or located.pipeline.namesrv or os.environ.get("NAMESRV_ADDR") or DEFAULT_NAMESRV


def _check_topics(located: "Located", addresses: str, *, create: bool = True) -> None:
    from skyrocket.client import blocking
    from skyrocket.pipeline.declared.topics_check import check_topics, cluster_settings, read_topics, written_topics

    if not [*read_topics(located.pipeline), *written_topics(located.pipeline)]:
        return
    with blocking.Admin(client=cluster_settings(located.pipeline, addresses)) as admin:
        check_topics(located.pipeline, located.locations, admin, create=create)


def _printed(as_json: bool) -> "Callable[[BatchDone], None]":
    return lambda done: typer.echo(done.json() if as_json else done.line())


def _stop_on_signals(stop: Callable[[], None]) -> None:
    """The first asks to stop between two batches, the second does not wait."""
    asked: list[int] = []

    def stopping(number: int, _frame: FrameType | None) -> None:
        if asked:
            os._exit(EXIT_PROBLEMS)
        asked.append(number)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stopping)
