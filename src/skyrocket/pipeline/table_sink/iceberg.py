"""An Iceberg table as a sink. The last batch of each query is a property of the table, set in the commit of its rows.

The summary of the snapshot says it too, for people; but snapshots expire, and the property stays.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.transforms import IdentityTransform

from skyrocket.errors import SkyrocketError
from skyrocket.pipeline.table_sink.batch_files import BatchFile, location_of
from skyrocket.pipeline.table_sink.batches import BatchId, check_columns

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql.types import StructType

CATALOG: Final = "skyrocket"
_LAST_BATCH: Final = "skyrocket.last-batch."
"""Before the query's id: a property of the table."""


class IcebergSink:
    keeps_columns = True  # pyiceberg learns from a file's statistics which partition it is

    def __init__(self, options: Mapping[str, str], partition_by: Sequence[str]) -> None:
        self.directory = options["path"].removeprefix("file://")
        self._name = options["table"]
        self._uri = options.get("uri", f"sqlite:///{self.directory}/catalog.db")
        self._catalog_name = options.get("catalog", CATALOG)
        self._partition_by = list(partition_by)

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
            paths = [location_of(each.path) for each in files]
            change.add_files(paths, snapshot_properties=noted, check_duplicate_files=False)
            if batch is not None:
                change.set_properties({_LAST_BATCH + batch.query: str(batch.number)})

    def _table(self, example: BatchFile) -> "Table":
        catalog = self._catalog()
        catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        schema = pq.read_schema(example.path).remove_metadata()
        location = location_of(Path(self.directory, self._name))
        table = self._existing(catalog) or self._created(catalog, schema, location)
        there = dict.fromkeys((each.name for each in table.schema().fields), "")  # types are compared by add_files
        check_columns(f"the Iceberg table {self._name}", there, dict.fromkeys(schema.names, ""))
        self._check_partitions(table)
        return table

    def _existing(self, catalog: Catalog) -> "Table | None":
        try:
            return catalog.load_table(self._name)
        except NoSuchTableError:
            return None

    def _created(self, catalog: Catalog, schema: pa.Schema, location: str) -> "Table":
        """Table and partitions come in one commit: nobody finds it without them."""
        try:
            with (
                catalog.create_table_transaction(self._name, schema, location) as change,
                change.update_spec() as spec,
            ):
                for column in self._partition_by:
                    spec.add_identity(column)
        except TableAlreadyExistsError:  # somebody was faster; whether it fits is looked at next
            pass
        return catalog.load_table(self._name)

    def _check_partitions(self, table: "Table") -> None:
        schema = table.schema()
        parts = [(schema.find_column_name(each.source_id), each.transform) for each in table.spec().fields]
        if parts != [(name, IdentityTransform()) for name in self._partition_by]:
            by = ", ".join(f"{name}" if isinstance(how, IdentityTransform) else f"{how}({name})" for name, how in parts)
            raise SkyrocketError(
                f"the Iceberg table {self._name} is partitioned by {by or 'nothing'}; set partitionBy to these columns"
            )

    def _catalog(self) -> Catalog:
        Path(self.directory).mkdir(parents=True, exist_ok=True)
        return load_catalog(self._catalog_name, uri=self._uri, warehouse=location_of(Path(self.directory)))
