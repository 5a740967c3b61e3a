"""Two reports of one job, made by different engines, compared in all that users see."""

from typing import Any

import pyarrow as pa

from skyrocket.pipeline.report import Report


def assert_same(one: Report, other: Report) -> None:
    """Tables with names, types and rows in order; findings, notes, facts and plots."""
    assert list(one.tables) == list(other.tables)
    for name, table in one.tables.items():
        assert _types(table) == _types(other.tables[name]), name
        assert _rows(table) == _rows(other.tables[name]), name
    assert (one.title, one.findings, list(one.notes)) == (other.title, other.findings, list(other.notes))
    assert one.facts == other.facts
    assert [(plot.title, plot.x, plot.y_label) for plot in one.plots] == [
        (plot.title, plot.x, plot.y_label) for plot in other.plots
    ]


def _types(table: pa.Table) -> dict[str, str]:
    """Without what Arrow calls the elements of lists, whether they may be null, and the zone of a moment."""
    return {
        field.name: str(field.type).replace("element", "item").replace(" not null", "").split(", tz=")[0]
        for field in table.schema
    }


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return [{name: _rounded(value) for name, value in row.items()} for row in rows]


def _rounded(value: Any) -> Any:
    return round(value, 9) if isinstance(value, float) else value
