"""The lake as a Delta table: its log lists the files that our books list. Needs the extra `skyrocket[delta]`.

The table is a mirror: each call makes the table's list of files equal to the lake's, in one Delta transaction. So a run
that was killed between publishing and mirroring is caught up by the next one, and mirroring twice changes nothing.
"""

import json
import time

import pyarrow as pa
import pyarrow.parquet as pq

from skyrocket.errors import SkyrocketError
from skyrocket.pipeline.lake.manifest import LakeFile
from skyrocket.pipeline.lake.versions import Lake

PARTITIONS = ["topic", "dt"]


def mirror_to_delta(lake: Lake) -> tuple[int, int]:
    """Make the Delta table list what the lake holds; how many files were added and removed."""
    try:
        from deltalake import DeltaTable, Schema
        from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
    except ImportError:
        raise SkyrocketError("a Delta table needs one more package: pip install 'skyrocket[delta]'") from None
    wanted, root = lake.state().files, str(lake.root)
    table = DeltaTable(root) if DeltaTable.is_deltatable(root) else None
    listed = set() if table is None else {_relative(uri, lake) for uri in table.file_uris()}
    added = [
        AddAction(
            each.path,
            each.size,
            {"topic": each.topic, "dt": each.date},
            each.last_store_ms,
            True,
            _stats(each),
        )
        for each in (wanted[path] for path in sorted(wanted.keys() - listed))
    ]
    now_ms = time.time_ns() // 1_000_000
    removed = [RemoveAction(path, True, now_ms) for path in sorted(listed - wanted.keys())]
    if not added and not removed:
        return 0, 0
    schema = Schema.from_arrow(_schema(lake, wanted[min(wanted)]))
    if table is None:
        create_table_with_add_actions(root, schema, added, partition_by=PARTITIONS)
    else:
        table.create_write_transaction([*added, *removed], "append", schema, PARTITIONS)
    return len(added), len(removed)


def _relative(uri: str, lake: Lake) -> str:
    return uri.removeprefix("file://").removeprefix(f"{lake.root.resolve()}/").removeprefix(f"{lake.root}/")


def _stats(each: LakeFile) -> str:
    return json.dumps({"numRecords": each.rows})


def _schema(lake: Lake, example: LakeFile) -> pa.Schema:
    """What the files hold, with the columns that their directories name."""
    inside = pq.read_schema(lake.root / example.path).remove_metadata()
    return pa.schema(
        [each for each in inside if each.name not in PARTITIONS] + [pa.field(name, pa.string()) for name in PARTITIONS]
    )
