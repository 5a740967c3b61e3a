"""The lake as a Delta or an Iceberg table, whose log lists the files that our books list. Each needs an extra package.

The table is a mirror: each call makes the table's list of files equal to the lake's, in one transaction. So a run that
was killed between publishing and mirroring is caught up by the next one, and mirroring twice changes nothing.
"""

import importlib.util
import json
import time
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.pipeline.lake.manifest import LakeFile
from skyrocket.pipeline.lake.versions import Lake

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog

TableFormat = Literal["parquet", "delta", "iceberg"]
PARTITIONS = ["topic", "dt"]
ICEBERG_TABLE = "skyrocket.messages"


def mirrored(lake: Lake, table: TableFormat) -> list[str]:
    """Make the table list what the lake holds, if there is to be one; what was done, in words."""
    if table == "parquet":
        return []
    added, removed = (mirror_to_delta if table == "delta" else mirror_to_iceberg)(lake)
    return [f"{table} table: {added} files added, {removed} removed"]


def check_table(lake: Lake, table: TableFormat) -> None:
    """Raises ConfigError where there can be no such table: told before the work, not after it."""
    if table == "parquet":
        return
    package = {"delta": "deltalake", "iceberg": "pyiceberg"}[table]
    if importlib.util.find_spec(package) is None:
        raise ConfigError(f"--table {table} needs one more package: pip install 'skyrocket[{table}]'")
    if lake.is_remote:
        raise ConfigError(f"--table {table} is for a lake in a directory of this machine, and {lake} is a URI")


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
        AddAction(path, each.size, {"topic": each.topic, "dt": each.date}, each.last_store_ms, True, _stats(each))
        for path, each in sorted(wanted.items())
        if path not in listed
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


def iceberg_catalog(lake: Lake) -> "SqlCatalog":
    """The catalog inside the lake's books; the table in it is `skyrocket.messages`."""
    try:
        from pyiceberg.catalog.sql import SqlCatalog
    except ImportError:
        raise SkyrocketError("an Iceberg table needs one more package: pip install 'skyrocket[iceberg]'") from None
    home = lake.books / "iceberg"
    home.mkdir(parents=True, exist_ok=True)
    return SqlCatalog("skyrocket", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}")


def mirror_to_iceberg(lake: Lake) -> tuple[int, int]:
    """Make the Iceberg table list what the lake holds; how many files were added and removed."""
    catalog = iceberg_catalog(lake)
    wanted = {str(lake.root / path): path for path in lake.state().files}
    if not catalog.table_exists(ICEBERG_TABLE):
        if not wanted:
            return 0, 0
        catalog.create_namespace_if_not_exists("skyrocket")
        schema = pq.read_schema(min(wanted)).remove_metadata()
        catalog.create_table(ICEBERG_TABLE, schema=schema)
    table = catalog.load_table(ICEBERG_TABLE)
    listed = {task.file.file_path: task.file for task in table.scan().plan_files()}
    added, removed = sorted(wanted.keys() - listed.keys()), sorted(listed.keys() - wanted.keys())
    if not added and not removed:
        return 0, 0
    with table.transaction() as change:
        if removed:
            with change.update_snapshot().overwrite() as snapshot:
                for path in removed:
                    snapshot.delete_data_file(listed[path])
        if added:
            change.add_files(added)
    return len(added), len(removed)
