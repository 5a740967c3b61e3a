"""Which topics' groups a running query reads with, and what it writes to: Spark's events do not say.

A `StreamingQueryProgress` describes a Python source by its format's name alone, so the options are read where Spark
keeps them: in the plan of the query, in the driver's own JVM.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skyrocket.model.query_report import key_of
from skyrocket.pipeline.topic_source.cluster import Cluster
from skyrocket.pipeline.topic_source.settings import FORMAT, read_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ADDRESS: Final = re.compile(r"@[0-9a-f]+$")  # of an object of Java that does not describe itself
_RELATION: Final = "StreamingRelationV2"


@dataclass(frozen=True)
class Place:
    """Where a query is reported: a cluster's name servers, under a key."""

    cluster: Cluster
    key: str


@dataclass(frozen=True)
class Described:
    """What stays the same while a query runs; without places it reads no topic with a group."""

    places: tuple[Place, ...] = ()
    sink: str = ""


def described(spark: "SparkSession", query_id: str, name: str) -> Described:
    """Of a query that runs; raises Py4JError where Spark has its plan elsewhere, OptionError for wrong options."""
    query = spark.streams.get(query_id)
    if query is None:  # it has just ended
        return Described()
    execution: Any = query._jsq.streamingQuery()
    leaves = execution.analyzedPlan().collectLeaves()
    sources = [_options(leaves.apply(number)) for number in range(leaves.size())]
    settings = [read_settings(options, streaming=True) for options in sources if options is not None]
    places = [Place(each.cluster, key_of(each.group, name or query_id)) for each in settings if each.group]
    return Described(tuple(dict.fromkeys(places)), _sink(execution.sink()))


def _options(leaf: Any) -> dict[str, str] | None:
    """Of a source of ours; None for another."""
    if leaf.getClass().getSimpleName() != _RELATION or str(leaf.sourceName()).lower() != FORMAT:
        return None
    return {str(name): str(value) for name, value in dict(leaf.extraOptions()).items()}


def _sink(table: Any) -> str:
    """FileSink[/lake], ForeachBatchSink, rocketmq."""
    text = str(table.toString())
    return str(table.name()) if _ADDRESS.search(text) else text
