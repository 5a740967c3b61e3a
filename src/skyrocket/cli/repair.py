"""`skyrocket repair`: does by hand what recovery will not do by itself, and says first what that is.

`skyrocket convert`: a store with RocksDB directories becomes one with files.
"""

from pathlib import Path
from typing import Annotated

import typer

from skyrocket.cli.program.lifetime import EXIT_PROBLEMS, failures_shown
from skyrocket.model.words import counted


def repair(
    path: Annotated[Path, typer.Argument(help="Store directory: the one that holds `commitlog`.", show_default=False)],
    plan: Annotated[bool, typer.Option("--plan", help="Only say what would be done.")] = False,
    conf: Annotated[Path | None, typer.Option(help="The broker's .conf file.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="One setting, as maxHashSlotNum=500.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log what recovery does.")] = False,
) -> None:
    """Repair a store of RocketMQ or Skyrocket that no broker uses: damaged records, wrong queues, index, checkpoint.

    What is replaced is kept in `skyrocket.repaired`. Exit code 0: all is well, 1: problems are left, 2: not a store.
    """
    # Here, because a server needs neither their time nor numpy's memory.
    from skyrocket.inspector.settings import inspection_settings
    from skyrocket.inspector.verify import verify
    from skyrocket.offline.store_files import find_store_files
    from skyrocket.repair.perform import perform
    from skyrocket.repair.plan import plan_repair

    with failures_shown("repair", verbose):
        given = inspection_settings(conf, settings or [])
        steps = plan_repair(path, given)
        for step in steps.steps:
            typer.echo(f"{step.target}: {step.action.value}\n    because {step.why}")
        for finding in steps.left:
            typer.echo(f"{finding.file}: left as it is: {finding.what}\n    {finding.remedy}")
        if not steps.steps:
            typer.echo("Nothing to repair.")
        if plan or not steps.steps:
            raise typer.Exit(EXIT_PROBLEMS if steps.left else 0)
        kept, report = perform(steps)
        typer.echo(f"Repaired: {report.records} records compared. What was replaced is in {kept}.")
        if verify(find_store_files(path), given).has_problems():
            typer.echo("Problems are left: run `skyrocket inspect --verify`.", err=True)
            raise typer.Exit(EXIT_PROBLEMS)


def convert(
    path: Annotated[Path, typer.Argument(help="Store directory: the one that holds `commitlog`.", show_default=False)],
) -> None:
    """Convert a RocketMQ store with RocksDB (storeType=defaultRocksDB, configManagerVersion=v2) that no broker uses.

    Topics, groups and offsets become JSON files; queues are built from the log at the next start. Needs
    skyrocket[rocksdb]. The RocksDB directories are kept in `skyrocket.converted`.
    """
    from skyrocket.offline.store_files import log_directory
    from skyrocket.repair.convert import convert as convert_store

    with failures_shown("convert", verbose=False):
        log_directory(path)  # refuses what is not a store
        done = convert_store(path)
        if done is None:
            typer.echo("Nothing to convert: the store has no RocksDB directory.")
            return
        typer.echo(f"Converted {', '.join(done.directories)}; they are kept in {done.kept}.")
        typer.echo(
            f"{counted(done.topics, 'topic')}, {counted(done.groups, 'group')}, {counted(done.offsets, 'offset')}."
        )
