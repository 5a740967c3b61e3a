"""An Iceberg table as a sink. The last batch of each query is a property of the table, set in the commit of its rows.

The summary of the snapshot says it too, for people; but snapshots expire, and the property stays.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError

from skyrocket.pipeline.table_sink.batch_files import BatchFile
from skyrocket.pipeline.table_sink.batches import BatchId, check_columns

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql.types import StructType

CATALOG: Final = "skyrocket"
_LAST_BATCH: Final = "skyrocket.last-batch."
"""Before the query's id: a property of the table."""


class IcebergSink:
    def __init__(self, options: Mapping[str, str]) -> None:
        self.directory = options["path"].removeprefix("file://")
        self._name = options["table"]
        self._uri = options.get("uri", f"sqlite:///{self.directory}/catalog.db")
        self._catalog_name = options.get("catalog", CATALOG)

    def holds(self, batch: BatchId) -> bool:
        try:
            table = self._catalog().load_table(self._name)
        except NoSuchTableError:
            return False
        return int(table.properties.get(_LAST_BATCH + batch.query, "-1")) >= batch.number

    def add(self, files: Sequence[BatchFile], _: "StructType", batch: BatchId | None) -> None:
        table = self._table(files[0])
        noted = {} if batch is None else {"skyrocket.query": batch.query, "skyrocket.batch": str(batch.number)}
        with table.transaction() as change:
            # Their names are new, so there is no need to look for them in the whole table.
            paths = [each.path.as_uri() for each in files]
            change.add_files(paths, snapshot_properties=noted, check_duplicate_files=False)
            if batch is not None:
                change.set_properties({_LAST_BATCH + batch.query: str(batch.number)})

    def _table(self, example: BatchFile) -> "Table":
        catalog = self._catalog()
        catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        schema = pq.read_schema(example.path).remove_metadata()
        location = Path(self.directory, self._name).as_uri()
        table = catalog.create_table_if_not_exists(self._name, schema=schema, location=location)
        there = dict.fromkeys((each.name for each in table.schema().fields), "")  # types are compared by add_files
        check_columns(f"the Iceberg table {self._name}", there, dict.fromkeys(schema.names, ""))
        return table

    def _catalog(self) -> Catalog:
        Path(self.directory).mkdir(parents=True, exist_ok=True)
        return load_catalog(self._catalog_name, uri=self._uri, warehouse=Path(self.directory).as_uri())
