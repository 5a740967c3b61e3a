"""`audit` in this process: which keys more than one message of a topic has."""

import re
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skyrocket.errors import ConfigError

_INTERNAL: Final = re.compile(r"(?i:rmq_sys_|%RETRY%)|(?i:SCHEDULE_TOPIC_XXXX|TRANS_CHECK_MAX_TIME_TOPIC)$")
_PREPARED: Final = 4  # of a transaction: the message comes once more when it is committed


def can_find(spec: str) -> bool:
    """Whether keys of this kind are found without Spark: a path into JSON is Spark's to follow."""
    return not spec.startswith("json:")


def repeated(messages: pa.Table, spec: str, most: int) -> list[dict[str, Any]]:
    """Keys that more than one message of a topic has, the most repeated first; raises ConfigError."""
    if not can_find(spec):
        raise ConfigError(f"--business-key {spec} needs Spark, which reads JSON by paths: leave out --engine local")
    topics = messages["topic"]
    internal = {name for name in pc.unique(topics).to_pylist() if _INTERNAL.match(name)}
    is_first = pc.and_(
        pc.equal(pc.bit_wise_and(messages["sysFlag"], _PREPARED), 0),
        pc.invert(pc.is_in(topics, pa.array(sorted(internal), pa.string()))),
    )
    keyed = pa.table(
        {"topic": topics, "key": _keys(messages, spec), "commitLogOffset": messages["commitLogOffset"]}
    ).filter(is_first)
    keyed = keyed.filter(pc.fill_null(pc.not_equal(keyed["key"], ""), False))
    groups = keyed.group_by(["topic", "key"]).aggregate(
        [("key", "count"), ("commitLogOffset", "min"), ("commitLogOffset", "max")]
    )
    found = groups.select(["topic", "key", "key_count", "commitLogOffset_min", "commitLogOffset_max"]).rename_columns(
        ["topic", "key", "messages", "first", "last"]
    )
    found = found.filter(pc.greater(found["messages"], 1))
    ordered = found.sort_by([("messages", "descending"), ("topic", "ascending"), ("key", "ascending")])
    rows: list[dict[str, Any]] = ordered.slice(0, most).to_pylist()
    return rows


def _keys(messages: pa.Table, spec: str) -> Any:
    if not spec.startswith("property:"):
        return pc.cast(messages[spec], pa.string())
    name = spec.removeprefix("property:")
    return pc.map_lookup(messages["properties"].combine_chunks(), pa.scalar(name), "last")
