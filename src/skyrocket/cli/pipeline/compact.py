"""`skyrocket pipeline compact`: small files of a lake become large ones."""

from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.pipeline.archive import DryRunOption, LakeOption, TableOption
from skyrocket.cli.pipeline.options import SparkOptions
from skyrocket.cli.pipeline.running import job_command

if TYPE_CHECKING:
    from skyrocket.pipeline.report import Report


@job_command
def compact(
    lake: LakeOption,
    table: TableOption = "parquet",
    target_mb: Annotated[int, typer.Option(help="Megabytes of a joined file.", min=1)] = 256,
    dry_run: DryRunOption = False,
    *,
    spark: SparkOptions,
) -> "Report":
    """Small Parquet files of a lake become large ones; the same rows, fewer files to open.

    Never a finding. Exit code 0: done, 1: it failed.
    """
    from skyrocket.pipeline.jobs import compact as job

    with spark.session("compact") as session:
        return job.run(session, lake, target_bytes=target_mb << 20, table=table, dry_run=dry_run)
