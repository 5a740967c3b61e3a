"""A Delta table as a sink. Its log has a place for what came from where: an application's id and its last version."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction, RemoveAction

from skyrocket.errors import SkyrocketError
from skyrocket.pipeline.table_sink.batch_files import BatchFile
from skyrocket.pipeline.table_sink.batches import BatchId, check_columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class DeltaSink:
    keeps_columns = False

    def __init__(self, options: Mapping[str, str], partition_by: Sequence[str]) -> None:
        self.directory = options["path"].removeprefix("file://")
        self._partition_by = list(partition_by)

    def holds(self, batch: BatchId) -> bool:
        if not DeltaTable.is_deltatable(self.directory):
            return False
        last = DeltaTable(self.directory).transaction_version(batch.query)
        return last is not None and last >= batch.number

    def add(self, files: Sequence[BatchFile], schema: "StructType", batch: BatchId | None) -> None:
        wanted = delta_schema(schema)
        table = self._table(wanted)
        now_ms = time.time_ns() // 1_000_000
        root = Path(self.directory)
        added: list[AddAction | RemoveAction] = [
            AddAction(str(each.path.relative_to(root)), each.size, each.partition, now_ms, True, _stats(each))
            for each in files
        ]
        noted = None if batch is None else [Transaction(batch.query, batch.number)]
        properties = CommitProperties(app_transactions=noted)
        table.create_write_transaction(added, "append", wanted, self._partition_by, commit_properties=properties)

    def _table(self, wanted: Schema) -> DeltaTable:
        if not DeltaTable.is_deltatable(self.directory):
            return DeltaTable.create(self.directory, wanted, "ignore", self._partition_by or None)
        table = DeltaTable(self.directory)
        check_columns(f"the Delta table {self.directory}", _columns(table.schema()), _columns(wanted))
        if table.metadata().partition_columns != self._partition_by:
            by = ", ".join(table.metadata().partition_columns) or "nothing"
            raise SkyrocketError(f"the Delta table {self.directory} is partitioned by {by}; set partitionBy to that")
        return table


def delta_schema(schema: "StructType") -> Schema:
    """Delta writes a schema down as Spark does; every column may be NULL, and notes of Spark's own are left out."""
    return Schema.from_json(json.dumps(_plain(json.loads(schema.json()))))


def _plain(part: Any) -> Any:
    if isinstance(part, list):
        return [_plain(each) for each in part]
    if not isinstance(part, dict):
        return part
    plain = {key: _plain(value) for key, value in part.items() if key != "metadata"}
    plain |= {key: True for key in ("nullable", "containsNull", "valueContainsNull") if key in plain}
    return plain | ({"metadata": {}} if "metadata" in part else {})


def _columns(schema: Schema) -> dict[str, Any]:
    return {each["name"]: each["type"] for each in json.loads(schema.to_json())["fields"]}


def _stats(each: BatchFile) -> str:
    return json.dumps({"numRecords": each.rows})
