"""read_stream: a stream whose beginning is remembered beside its checkpoint."""

import hashlib
import json
from typing import TYPE_CHECKING

from skyrocket.pipeline.file_systems import is_remote
from skyrocket.pipeline.topic_source.initial_offsets import local_path
from skyrocket.pipeline.topic_source.settings import FORMAT, TopicSettings, read_settings

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
    settings = read_settings(given, streaming=True)  # here, where the caller's own line is in the traceback
    if not settings.initial_offsets and needs_file(checkpoint, settings):
        given["initialOffsetsLocation"] = initial_offsets_location(checkpoint, given)
    reader = spark.readStream.format(FORMAT).options(**given)
    return (reader if schema is None else reader.schema(schema)).load()


def needs_file(checkpoint: str, settings: TopicSettings) -> bool:
    """Whether the beginning must be written down; on another machine only where there is more than one answer."""
    return not (settings.start.is_fixed and is_remote(checkpoint))


def initial_offsets_location(checkpoint: str, options: dict[str, str]) -> str:
    """The file for one source of a query."""
    lower = {name.lower(): value for name, value in options.items()}
    known = [lower.get(name, "") for name in _IDENTITY]
    # Only where there is one: files of streams without it keep their names.
    identity = json.dumps([*known, lower["namespace"]] if lower.get("namespace") else known)
    name = hashlib.sha256(identity.encode()).hexdigest()[:12]
    root = checkpoint.rstrip("/") if is_remote(checkpoint) else str(local_path(checkpoint))
    return f"{root}/{_FOLDER}/{name}.json"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, dict) else str(value)
