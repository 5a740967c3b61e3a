"""`audit` in this process: the same tasks one after the other, and keys counted by pyarrow."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from skyrocket.columns.schema import arrow_schema
from skyrocket.pipeline.commit_log.data_source import CommitLogReader
from skyrocket.pipeline.commit_log.settings import read_settings
from skyrocket.pipeline.jobs.audit import SPLIT_BYTES, USUAL, AuditRules, R, T, compared, key_columns
from skyrocket.pipeline.jobs.local.reading import read_all
from skyrocket.pipeline.jobs.local.repeats import repeated
from skyrocket.pipeline.report import Report


class InProcess:
    """Who works through the tasks of an audit."""

    def tasks(self, items: Sequence[T], task: Callable[[T], R]) -> list[R]:
        return [task(item) for item in items]

    def repeated(self, store: Path, spec: str, most: int) -> list[dict[str, Any]]:
        schema = arrow_schema(key_columns(spec))
        reader = CommitLogReader(read_settings({"path": str(store), "onDamage": "report"}), schema)
        return repeated(read_all(reader, reader.partitions(), schema), spec, most)


def run(store: Path, rules: AuditRules = USUAL, split_bytes: int = SPLIT_BYTES) -> Report:
    """Compare everything with everything; every difference is a finding."""
    return compared(InProcess(), store, rules, split_bytes)
