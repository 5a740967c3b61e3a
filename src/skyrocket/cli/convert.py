"""`skyrocket convert`: a store with RocksDB directories becomes one with files."""

from pathlib import Path
from typing import Annotated

import typer

from skyrocket.cli.program.lifetime import failures_shown


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
        typer.echo(f"{done.topics} topics, {done.groups} groups, {done.offsets} offsets.")
