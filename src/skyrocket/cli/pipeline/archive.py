"""`skyrocket pipeline archive | compact`: a broker's commit log → a lake of Parquet files, small ones → large ones."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from skyrocket.cli.pipeline.options import SparkOptions, SplitMbOption, StoreArgument
from skyrocket.cli.pipeline.running import job_command

if TYPE_CHECKING:
    from skyrocket.pipeline.report import Report

LakeOption = Annotated[
    str, typer.Option("--lake", help="Directory of the lake; or s3://…, gs://…, hdfs://… (see the guide of the lake).")
]
TableOption = Annotated[
    Literal["parquet", "delta", "iceberg"],
    typer.Option("--table", help="Also list the files as a Delta or Iceberg table (needs the extra of that name)."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")]


@job_command
def archive(
    store: StoreArgument,
    lake: LakeOption,
    broker_name: Annotated[str, typer.Option("--broker-name", help="brokerName of the store's broker.")],
    topics: Annotated[str, typer.Option("--topics", help="A regular expression; the same in every run.")] = ".*",
    table: TableOption = "parquet",
    retention_hours: Annotated[int, typer.Option(help="The broker's fileReservedTime.", min=1)] = 72,
    split_mb: SplitMbOption = 256,
    dry_run: DryRunOption = False,
    *,
    spark: SparkOptions,
) -> "Report":
    """The commit log → Parquet by topic and day, every message exactly once; says how far ahead of retention.

    Findings: ranges of the log that were gone or damaged; less than a day until unarchived files are deleted.
    Exit code 0: none, 1: it failed, 2: findings.
    """
    from skyrocket.pipeline.jobs import archive as job

    source = job.ArchiveFrom(store, broker_name, topics, retention_hours)
    job.check(source, lake, table)
    with spark.session("archive") as session:
        return job.run(session, source, lake, table=table, split_bytes=split_mb << 20, dry_run=dry_run)


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

    job.check(lake, table)
    with spark.session("compact") as session:
        return job.run(session, lake, target_bytes=target_mb << 20, table=table, dry_run=dry_run)
