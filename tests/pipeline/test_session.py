"""A session from one call: workers run in this interpreter."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_workers_run_in_the_interpreter_of_the_driver(spark: "SparkSession") -> None:
    found = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert found == [sys.executable]
