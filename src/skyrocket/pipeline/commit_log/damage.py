"""Damaged regions of a log: as rows, as an error, and as files beside a run."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from skyrocket.errors import CorruptFile
from skyrocket.pipeline.commit_log.splits import Split
from skyrocket.pipeline.durable_files import replaced_file

DAMAGE_SCHEMA = pa.schema(
    {
        "path": pa.string(),
        "file": pa.string(),
        "position": pa.int64(),
        "length": pa.int64(),
        "physicalOffset": pa.int64(),
        "cause": pa.string(),
    }
)
REMEDY = (
    'To read on behind it, set .option("onDamage", "report"); the regions are then the rows of '
    '.option("view", "damage"), and "damageLocation" keeps them beside a run'
)


class DamagedRegion(NamedTuple):
    """Bytes of a log file that could not be read as messages."""

    path: str
    position: int
    length: int
    physical_offset: int
    cause: str


def region(split: Split, position: int, length: int, cause: str) -> DamagedRegion:
    """A region of the file of a split."""
    return DamagedRegion(split.path, position, length, split.base_offset + position, cause)


def damage_error(found: DamagedRegion) -> CorruptFile:
    """What a read raises that must not go on."""
    reason = f"{found.length} bytes at physical offset {found.physical_offset} hold no message: {found.cause}"
    return CorruptFile(found.path, reason, REMEDY, found.position)


def damage_batch(regions: Sequence[DamagedRegion], schema: pa.Schema = DAMAGE_SCHEMA) -> pa.RecordBatch:
    """Regions as rows."""
    values = ((str(Path(path).parent), Path(path).name, *rest) for path, *rest in regions)
    rows = [dict(zip(DAMAGE_SCHEMA.names, row, strict=True)) for row in values]
    return pa.RecordBatch.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema)


def keep_damage(location: Path, split: Split, regions: Sequence[DamagedRegion]) -> None:
    """Write the regions of a split as a Parquet file whose name depends on the split alone: a retry replaces it."""
    name = f"{split.broker_name or 'log'}-{split.name}{'-missing' if split.missing else ''}.parquet"
    target = location / name.replace("/", "_")
    if not regions:
        target.unlink(missing_ok=True)  # of an earlier run, before the log was mended
        return
    with replaced_file(target) as file:
        pq.write_table(pa.Table.from_batches([damage_batch(regions)]), file)
