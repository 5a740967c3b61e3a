"""`compact`: small Parquet files of a lake become large ones; the same rows, fewer files to open."""

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from skyrocket.errors import ConfigError
from skyrocket.pipeline.jobs.launch import in_tasks
from skyrocket.pipeline.lake import Change, Lake, LakeFile, lake_writer
from skyrocket.pipeline.lake.compaction import files_to_join, joined
from skyrocket.pipeline.lake.mirrors import TableFormat, check_table, mirrored
from skyrocket.pipeline.report import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TARGET_BYTES: Final = 256 << 20
_WRITER: Final = ".compaction"  # no broker is called so
_SCHEMA: Final = pa.schema(
    [("topic", pa.string()), ("date", pa.string()), ("files", pa.int64()), ("rows", pa.int64()), ("bytes", pa.int64())]
)


class JoinTask(NamedTuple):
    """The files that one task joins."""

    lake: str
    staging: str
    files: list[LakeFile]


def run(
    spark: "SparkSession",
    place: Path | str,
    *,
    target_bytes: int = TARGET_BYTES,
    table: TableFormat = "parquet",
    dry_run: bool = False,
) -> Report:
    """Join what is small; files that are gone afterwards are gone for readers that listed them before."""
    lake = check(place, table)
    groups = files_to_join(lake.state().files.values(), target_bytes)
    if not dry_run and groups:
        with lake_writer(lake, _WRITER) as books:
            groups = files_to_join(lake.state().files.values(), target_bytes)
            tasks = [JoinTask(str(lake.location), books.staging, group) for group in groups]
            new = in_tasks(spark, tasks, _join)
            if new:
                removed = tuple(each.path for group in groups for each in group)
                books.publish(Change("compact", "", added=tuple(new), removed=removed))
    notes = mirrored(lake, table)
    before = sum(len(group) for group in groups)
    verb = "would become" if dry_run else "became"
    rows = [
        {
            "topic": group[0].topic,
            "date": group[0].date,
            "files": len(group),
            "rows": sum(each.rows for each in group),
            "bytes": sum(each.size for each in group),
        }
        for group in groups
    ]
    return Report(
        f"Compaction of {lake}",
        {"joined": pa.Table.from_pylist(rows, schema=_SCHEMA)},
        notes=[f"{before} files {verb} {len(groups)}", *notes],
    )


def check(place: Path | str, table: TableFormat) -> Lake:
    """Raises ConfigError for what is no lake; needs no Spark."""
    lake = Lake(place)
    check_table(lake, table)
    if not lake.is_begun:
        raise ConfigError(f"{lake} is not a lake: `skyrocket pipeline archive --lake {lake}` makes one")
    return lake


def _join(task: JoinTask) -> LakeFile:
    return joined(Lake(task.lake).files, task.staging, task.files)
