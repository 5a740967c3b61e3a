"""`skyrocket pipeline compact`: small files of a lake become large ones."""

from typing import Annotated

import typer

from skyrocket.cli.options import VerboseOption
from skyrocket.cli.pipeline.archive import DryRunOption, LakeOption, TableOption
from skyrocket.cli.pipeline.options import (
    DEFAULT_MASTER,
    MasterOption,
    OutOption,
    SparkConfOption,
    spark_settings,
)
from skyrocket.cli.pipeline.running import finish, job_failures_shown


def compact(
    lake: LakeOption,
    table: TableOption = "parquet",
    target_mb: Annotated[int, typer.Option(help="Megabytes of a joined file.", min=1)] = 256,
    dry_run: DryRunOption = False,
    master: MasterOption = DEFAULT_MASTER,
    spark_conf: SparkConfOption = None,
    out: OutOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Small Parquet files of a lake become large ones; the same rows, fewer files to open.

    Never a finding. Exit code 0: done, 1: it failed.
    """
    with job_failures_shown("compact", verbose):
        from skyrocket.pipeline.jobs import compact as job
        from skyrocket.pipeline.jobs.launch import job_session

        with job_session("compact", master, spark_settings(spark_conf)) as spark:
            report = job.run(spark, lake, target_bytes=target_mb << 20, table=table, dry_run=dry_run)
        finish(report, out)
