"""From a DataFrame to a table of a report, and small words that several jobs use in queries."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
MOST_ROWS: Final = 100_000  # of a table that a report carries in the driver's memory


def table(rows: "DataFrame", most: int = MOST_ROWS) -> pa.Table:
    """The rows in the driver, up to the limit; which ones it leaves is the query's business (order it)."""
    return rows.limit(most).toArrow()


def percentiles(column: str) -> "list[Column]":
    """Count, percentiles and maximum of a column, named so; what is null does not count."""
    return [
        fn.count(column).alias("count"),
        *(fn.percentile(column, fn.lit(share)).alias(name) for name, share in PERCENTILES.items()),
        fn.max(column).cast("double").alias("max"),
    ]


def best_of(rows: "DataFrame", keys: Sequence[str], *order: "Column", most: int = 1) -> "DataFrame":
    """The first rows of each group of keys in this order."""
    window = Window.partitionBy(*keys).orderBy(*order)
    return rows.withColumn("_rank", fn.row_number().over(window)).where(fn.col("_rank") <= most).drop("_rank")


def floats(values: Sequence[Any]) -> list[float]:
    """For a plot: what was not measured is a hole."""
    return [float("nan") if value is None else float(value) for value in values]


def skewed(counts: "DataFrame", of: Sequence[str], column: str, *, factor: float, least: int) -> "DataFrame":
    """Queues with more than `factor` times the mean of those with the same `of`, and more than `least`; largest first.

    They are why adding consumers does not help. `mean` and `ratio` say by how much; a topic with one queue has nothing
    to be compared with.
    """
    siblings = Window.partitionBy(*of)
    compared = counts.withColumn("mean", fn.avg(column).over(siblings)).withColumn(
        "ratio", fn.try_divide(fn.col(column), fn.col("mean"))
    )
    is_skewed = (fn.col("ratio") > factor) & (fn.col(column) >= least) & (fn.count("*").over(siblings) > 1)
    return compared.withColumn("_skewed", is_skewed).where("_skewed").drop("_skewed").orderBy(fn.desc("ratio"), *of)
