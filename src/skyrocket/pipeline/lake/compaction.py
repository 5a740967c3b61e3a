"""Small files of a lake become large ones: which go together, and how they are joined."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pyarrow.parquet as pq

from skyrocket.errors import DataError
from skyrocket.pipeline.durable_files import flush_file
from skyrocket.pipeline.lake.manifest import LakeFile
from skyrocket.pipeline.lake.parquet_files import file_path, parquet_writer


def files_to_join(files: Iterable[LakeFile], target_bytes: int) -> list[list[LakeFile]]:
    """Runs of neighbours (same topic, day and broker) that together make about one file of the wished size."""
    groups: list[list[LakeFile]] = []
    ordered = sorted(files, key=lambda each: (each.topic, each.date, each.broker, each.first_offset))
    for _, neighbours in groupby(ordered, key=lambda each: (each.topic, each.date, each.broker)):
        run: list[LakeFile] = []
        for each in neighbours:
            if run and sum(one.size for one in run) + each.size > target_bytes:
                groups.append(run)
                run = []
            run.append(each)
        groups.append(run)
    return [run for run in groups if len(run) > 1]


def joined(root: Path, staging: Path, files: list[LakeFile]) -> LakeFile:
    """Write one staged file with the rows of all of these, in their order; a row group at a time."""
    first, last = files[0], files[-1]
    path = file_path(first.topic, first.date, first.broker, first.first_offset, last.last_offset)
    target = staging / path
    target.parent.mkdir(parents=True, exist_ok=True)
    rows = 0
    with parquet_writer(target, pq.read_schema(root / first.path)) as writer:
        for each in files:
            for batch in pq.ParquetFile(root / each.path).iter_batches(batch_size=100_000):
                writer.write_batch(batch, row_group_size=100_000)
                rows += batch.num_rows
    expected = sum(each.rows for each in files)
    if rows != expected:
        raise DataError(f"the files to be joined into {path} hold {rows} rows, the lake's books say {expected}")
    flush_file(target)
    return replace(
        first,
        path=path,
        rows=rows,
        size=target.stat().st_size,
        last_offset=last.last_offset,
        first_store_ms=min(each.first_store_ms for each in files),
        last_store_ms=max(each.last_store_ms for each in files),
    )
