"""`skyrocket pipeline rebuild`: consume queues and index files from the commit log alone."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from skyrocket.cli.pipeline.options import SparkOptions, SplitMbOption
from skyrocket.cli.pipeline.running import job_command

if TYPE_CHECKING:
    from skyrocket.pipeline.report import Report


@job_command
def rebuild(
    store: Annotated[Path, typer.Argument(help="The store directory of a broker that does not run, or a copy.")],
    target: Annotated[
        Path | None, typer.Option("--target", help="Put them here instead of into the store.", file_okay=False)
    ] = None,
    conf: Annotated[
        Path | None, typer.Option("--conf", help="The broker's .conf: file sizes, delay levels, light queues.")
    ] = None,
    only: Annotated[Literal["queues", "index"] | None, typer.Option("--only", help="One of the two.")] = None,
    index_tags: Annotated[
        bool, typer.Option("--index-tags/--no-index-tags", help="Tags in the index, as 5.4.0; 4.9 and 5.3 have none.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace the queues and index files that are there.")] = False,
    skip_damage: Annotated[
        bool, typer.Option("--skip-damage", help="Leave out damaged regions of the log, and report them.")
    ] = False,
    verify_crc: Annotated[bool, typer.Option("--verify-crc", help="Compare the checksum of every message.")] = False,
    split_mb: SplitMbOption = 256,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do everything but publish, and leave no trace.")] = False,
    *,
    spark: SparkOptions,
) -> "Report":
    """Consume queues and index files from the commit log alone, byte for byte as the broker builds them.

    Findings: damaged regions, queues with missing or repeated numbers, records that cannot have a queue.
    Exit code 0: none, 1: it failed, 2: findings.
    """
    from skyrocket.pipeline.commit_log.log_files import find_log_files
    from skyrocket.pipeline.jobs import rebuild as job
    from skyrocket.pipeline.rebuild.rules import RebuildRules, rules_of_broker

    rules = rules_of_broker(conf) if conf is not None else RebuildRules()
    if not index_tags:
        rules = replace(rules, index_tags=False)
    find_log_files(str(store))  # raises for what is no store, before anybody waits for Spark
    with spark.session("rebuild") as session:
        return job.run(
            session,
            store,
            target=target,
            rules=rules,
            parts=job.EVERYTHING if only is None else (only,),
            force=force,
            skip_damage=skip_damage,
            verify_crc=verify_crc,
            split_bytes=split_mb << 20,
            dry_run=dry_run,
        )
