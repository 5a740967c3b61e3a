"""Queues that have much more than their share: the reason why adding consumers does not help."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def skewed(counts: "DataFrame", of: Sequence[str], column: str, *, factor: float, least: int) -> "DataFrame":
    """Rows whose count exceeds `factor` times the mean of all queues with the same `of`, and `least`; largest first.

    `mean` and `ratio` say by how much. A topic with one queue has nothing to be compared with.
    """
    siblings = Window.partitionBy(*of)
    compared = counts.withColumn("mean", fn.avg(column).over(siblings)).withColumn(
        "ratio", fn.try_divide(fn.col(column), fn.col("mean"))
    )
    is_skewed = (fn.col("ratio") > factor) & (fn.col(column) >= least) & (fn.count("*").over(siblings) > 1)
    return compared.withColumn("_skewed", is_skewed).where("_skewed").drop("_skewed").orderBy(fn.desc("ratio"), *of)
