"""Small words over rows as dicts: groups, orders with nulls, and tables with the types that Spark gives."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skyrocket.pipeline.jobs.tables import MOST_ROWS, PERCENTILES

Row = Mapping[str, Any]


def grouped(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows of each key, in the order of their first row."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def nulls_first(*values: Any) -> tuple[Any, ...]:
    """A key for sorting upwards as Spark does: null before everything."""
    return tuple((value is not None, value if value is not None else 0) for value in values)


def present(values: Iterable[Any]) -> list[Any]:
    """Without nulls, which no aggregate counts."""
    return [value for value in values if value is not None]


def most(values: Iterable[Any]) -> Any:
    """The maximum, null if there is nothing."""
    return max(present(values), default=None)


def least(values: Iterable[Any]) -> Any:
    """The minimum, null if there is nothing."""
    return min(present(values), default=None)


def total(values: Iterable[Any]) -> Any:
    """The sum, null if there is nothing."""
    given = present(values)
    return sum(given) if given else None


def percentiles_of(values: Sequence[float]) -> dict[str, Any]:
    """Count, percentiles (between neighbours, as Spark's `percentile`) and maximum."""
    found = np.quantile(np.array(values, np.float64), list(PERCENTILES.values())).tolist()
    return {"count": len(values), **dict(zip(PERCENTILES, found, strict=True)), "max": float(max(values))}


def table_of(rows: Iterable[Row], schema: pa.Schema, most_rows: int = MOST_ROWS) -> pa.Table:
    """A table of a report, up to the limit."""
    return pa.Table.from_pylist([dict(row) for row in list(rows)[:most_rows]], schema)


def skewed_rows(rows: Sequence[Row], of: Sequence[str], column: str, *, factor: float, least_count: int) -> list[Row]:
    """As `tables.skewed`: queues with more than `factor` times the mean of their siblings, largest first."""
    found: list[Row] = []
    for siblings in grouped(rows, *of).values():
        mean = sum(row[column] for row in siblings) / len(siblings)
        if len(siblings) < 2 or mean == 0:
            continue
        found += [
            {**row, "mean": mean, "ratio": row[column] / mean}
            for row in siblings
            if row[column] / mean > factor and row[column] >= least_count
        ]
    return sorted(found, key=lambda row: (-row["ratio"], *(row[name] for name in of)))


def by(*names: str, down: Sequence[str] = ()) -> Callable[[Row], Any]:
    """A key for sorting: first by the numbers of `down`, largest first, then by names."""
    return lambda row: (*(-row[name] for name in down), *(row[name] for name in names))
