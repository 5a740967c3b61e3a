"""How a job runs as a command: Spark is there or the right advice is, errors are a line, the report decides the end."""

import contextlib
import importlib.util
import logging
from collections.abc import Callable, Iterator
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import typer

from skyrocket.cli.pipeline.options import OutOption
from skyrocket.cli.program.lifetime import EXIT_PROBLEMS
from skyrocket.cli.program.options import verbose_parameter, with_groups, with_parameters
from skyrocket.errors import SkyrocketError

if TYPE_CHECKING:
    from skyrocket.pipeline.report import Report

EXIT_FINDINGS: Final = 2
_NEEDED: Final = ("pyspark", "pyarrow", "matplotlib")


@contextlib.contextmanager
def job_failures_shown(job: str, verbose: bool) -> Iterator[None]:
    """Before anything of Spark is imported: say what is missing; afterwards: what went wrong, with exit code 1."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    missing = [library for library in _NEEDED if importlib.util.find_spec(library) is None]
    if missing:
        _leave(job, f"{', '.join(missing)} is not installed; run: pip install 'skyrocket[spark]'")
    try:
        yield
    except SkyrocketError as error:
        if verbose:
            logging.getLogger(__name__).info("the whole error", exc_info=error)
        _leave(job, str(error))


def _leave(job: str, why: str) -> NoReturn:
    line = " ".join(why.split("\n"))  # what a server said may have several
    typer.echo(f"skyrocket pipeline {job}: {line}", err=True)
    raise typer.Exit(EXIT_PROBLEMS)


def job_command(job: "Callable[..., Report | None]") -> Callable[..., None]:
    """A job as a command: groups as options, --out, --verbose; its report is shown, and findings are exit code 2."""
    with_options = with_groups(job)
    out_parameter = Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation=OutOption)

    def called(out: Path | None, verbose: bool, **given: Any) -> None:
        with job_failures_shown(job.__name__, verbose):
            report = with_options(**given)
            if report is not None:
                _finish(report, out)

    own = signature(with_options).parameters.values()
    return with_parameters(called, job, [*own, out_parameter, verbose_parameter()])


def _finish(report: "Report", out: Path | None) -> None:
    """Print it, write it, and leave with 2 when there are findings."""
    report.print()
    if out is not None:
        report.write(out)
        typer.echo(f"written to {out / 'report.html'}", err=True)
    if report.findings:
        raise typer.Exit(EXIT_FINDINGS)
