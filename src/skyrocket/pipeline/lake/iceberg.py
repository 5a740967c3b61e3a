"""The lake as an Iceberg table in a SQLite catalog of its own. Needs the extra `skyrocket[iceberg]`.

A mirror like the Delta table: one snapshot makes the table's list of files equal to the lake's.
"""

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from skyrocket.errors import SkyrocketError
from skyrocket.pipeline.lake.versions import Lake

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog

NAMESPACE, TABLE = "skyrocket", "skyrocket.messages"


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
    if not catalog.table_exists(TABLE):
        if not wanted:
            return 0, 0
        catalog.create_namespace_if_not_exists(NAMESPACE)
        schema = pq.read_schema(min(wanted)).remove_metadata()
        catalog.create_table(TABLE, schema=schema)
    table = catalog.load_table(TABLE)
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
