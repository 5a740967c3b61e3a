"""`skyrocket pipeline archive`: a broker's commit log → a lake of Parquet files."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from skyrocket.cli.options import VerboseOption
from skyrocket.cli.pipeline.options import (
    DEFAULT_MASTER,
    MasterOption,
    OutOption,
    SparkConfOption,
    SplitMbOption,
    StoreArgument,
    spark_settings,
)
from skyrocket.cli.pipeline.running import finish, job_failures_shown

LakeOption = Annotated[Path, typer.Option("--lake", help="Directory of the lake.", file_okay=False)]
TableOption = Annotated[
    Literal["parquet", "delta", "iceberg"],
    typer.Option("--table", help="Also list the files as a Delta or Iceberg table (needs the extra of that name)."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")]


def archive(
    store: StoreArgument,
    lake: LakeOption,
    broker_name: Annotated[str, typer.Option("--broker-name", help="brokerName of the store's broker.")],
    topics: Annotated[str, typer.Option("--topics", help="A regular expression; the same in every run.")] = ".*",
    table: TableOption = "parquet",
    retention_hours: Annotated[int, typer.Option(help="The broker's fileReservedTime.", min=1)] = 72,
    split_mb: SplitMbOption = 256,
    dry_run: DryRunOption = False,
    master: MasterOption = DEFAULT_MASTER,
    spark_conf: SparkConfOption = None,
    out: OutOption = None,
    verbose: VerboseOption = False,
) -> None:
    """The commit log → Parquet by topic and day, every message exactly once; says how far ahead of retention.

    Findings: ranges of the log that were gone or damaged; less than a day until unarchived files are deleted.
    Exit code 0: none, 1: it failed, 2: findings.
    """
    with job_failures_shown("archive", verbose):
        from skyrocket.pipeline.jobs import archive as job
        from skyrocket.pipeline.jobs.launch import job_session

        source = job.ArchiveFrom(store, broker_name, topics, retention_hours)
        with job_session("archive", master, spark_settings(spark_conf)) as spark:
            report = job.run(spark, source, lake, table=table, split_bytes=split_mb << 20, dry_run=dry_run)
        finish(report, out)
