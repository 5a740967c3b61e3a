"""`skyrocket pipeline <job>`: jobs on Spark. A module per job; a new one is a line in JOBS.

Nothing here imports Spark before a job runs, so that --help is quick and works without the extra.
"""

from collections.abc import Callable
from typing import Any, Final

import typer
from typer.core import TyperGroup

from skyrocket.cli.pipeline.archive import archive, compact
from skyrocket.cli.pipeline.audit import audit
from skyrocket.cli.pipeline.dedupe import dedupe
from skyrocket.cli.pipeline.dlq import dlq
from skyrocket.cli.pipeline.lag import lag
from skyrocket.cli.pipeline.rebuild import rebuild
from skyrocket.cli.pipeline.replay import replay
from skyrocket.cli.pipeline.run import check, run
from skyrocket.cli.pipeline.trace import trace
from skyrocket.cli.program.lifetime import EXIT_PROBLEMS
from skyrocket.cli.program.usage import WRONG_USAGE

# A command each: its name is the function's, its line of help the first of the docstring.
JOBS: Final[tuple[Callable[..., Any], ...]] = (
    archive,
    compact,
    rebuild,
    audit,
    trace,
    lag,
    dlq,
    replay,
    dedupe,
    run,
    check,
)


class _Group(TyperGroup):
    """2 says that a job has findings: wrong usage must leave with another code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except WRONG_USAGE as error:
            error.exit_code = EXIT_PROBLEMS
            raise


pipeline = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    help="Jobs on Spark: over topics, over the store directory of a broker, or over an archive.\n\n"
    "Exit code 0: done, 1: it failed, 2: done, and there is something to look at.",
)
for _job in JOBS:
    pipeline.command(_job.__name__.replace("_", "-"))(_job)
