"""Pipelines on Spark: topics and store files as DataFrames. Needs the extra `skyrocket[spark]`.

    from skyrocket.pipeline import session

    spark = session("orders")
    orders = spark.read.format("rocketmq").options(namesrvAddr="127.0.0.1:9876", subscribe="orders").load()

Importing this package needs neither Spark nor Arrow; what needs them is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from skyrocket.pipeline.java import NoJava
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.session import SparkMissing, register, session

if TYPE_CHECKING:
    from skyrocket.columns.schema import COLUMNS, arrow_schema
    from skyrocket.pipeline.query_reports.listener import report_queries
    from skyrocket.pipeline.schema import spark_schema
    from skyrocket.pipeline.topic_source.stream import read_stream

_LATER: Final = {
    "COLUMNS": "skyrocket.columns.schema",
    "arrow_schema": "skyrocket.columns.schema",
    "read_stream": "skyrocket.pipeline.topic_source.stream",
    "report_queries": "skyrocket.pipeline.query_reports.listener",
    "spark_schema": "skyrocket.pipeline.schema",
}
__all__ = [
    "COLUMNS",
    "NoJava",
    "OptionError",
    "SparkMissing",
    "arrow_schema",
    "read_stream",
    "register",
    "report_queries",
    "session",
    "spark_schema",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
