"""read_stream: a stream whose beginning is remembered beside its checkpoint."""

import hashlib
import json
from typing import TYPE_CHECKING

from skyrocket.pipeline.topic_source.initial_offsets import local_path
from skyrocket.pipeline.topic_source.settings import FORMAT, read_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_FOLDER = "rocketmq-source"
# Two streams of one query that differ in these read different messages.
_IDENTITY = ("subscribe", "subscribepattern", "assign", "tags", "sqlfilter", "keys")


def read_stream(
    spark: "SparkSession", *, checkpoint: str, schema: "StructType | str | None" = None, **options: object
) -> "DataFrame":
    """A stream over topics, for a query with this `checkpointLocation`; raises OptionError.

    Where it begins is written to <checkpoint>/rocketmq-source/ before the first batch, so that `latest`, a time or a
    group's offsets mean the same place after a crash.
    """
    given = {name: _text(value) for name, value in options.items() if value is not None}
    if not any(name.lower() == "initialoffsetslocation" for name in given):
        given["initialOffsetsLocation"] = initial_offsets_location(checkpoint, given)
    read_settings(given, streaming=True)  # here, where the caller's own line is in the traceback
    reader = spark.readStream.format(FORMAT).options(**given)
    return (reader if schema is None else reader.schema(schema)).load()


def initial_offsets_location(checkpoint: str, options: dict[str, str]) -> str:
    """The file for one source of a query."""
    lower = {name.lower(): value for name, value in options.items()}
    known = [lower.get(name, "") for name in _IDENTITY]
    # Only where there is one: files of streams without it keep their names.
    identity = json.dumps([*known, lower["namespace"]] if lower.get("namespace") else known)
    name = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return str(local_path(checkpoint) / _FOLDER / f"{name}.json")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, dict) else str(value)
