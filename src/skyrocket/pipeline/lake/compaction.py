"""Small files of a lake become large ones: which go together, and how they are joined."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from skyrocket.errors import DataError
from skyrocket.pipeline.lake.files import LakeFiles
from skyrocket.pipeline.lake.manifest import LakeFile
from skyrocket.pipeline.lake.parquet_files import file_path


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


def joined(lake: LakeFiles, staging: str, files: list[LakeFile]) -> LakeFile:
    """Write one staged file with the rows of all of these, in their order; a row group at a time."""
    first, last = files[0], files[-1]
    path = file_path(first.topic, first.date, first.broker, first.first_offset, last.last_offset)
    target = f"{staging}/{path}"
    rows = 0
    with lake.new_parquet(target, lake.parquet(first.path).schema_arrow) as writer:
        for each in files:
            for batch in lake.parquet(each.path).iter_batches(batch_size=100_000):
                writer.write_batch(batch, row_group_size=100_000)
                rows += batch.num_rows
    expected = sum(each.rows for each in files)
    if rows != expected:
        raise DataError(f"the files to be joined into {path} hold {rows} rows, the lake's books say {expected}")
    return replace(
        first,
        path=path,
        rows=rows,
        size=lake.size(target),
        last_offset=last.last_offset,
        first_store_ms=min(each.first_store_ms for each in files),
        last_store_ms=max(each.last_store_ms for each in files),
    )
