"""Which columns a DataFrame may have to be sent, and of which types; a misspelt one must not be dropped in silence."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from pyspark.sql import types as t

from skyrocket.errors import ConfigError
from skyrocket.pipeline.options import nearest

_TEXT: Final = "STRING"
_NUMBER: Final = "INT or BIGINT"
TYPES: Final = {
    "body": "STRING or BINARY",
    "value": "STRING or BINARY",
    "topic": _TEXT,
    "tags": _TEXT,
    "keys": "STRING or ARRAY<STRING>",
    "properties": "MAP<STRING, STRING>",
    "queueId": _NUMBER,
    "shardingKey": _TEXT,
    "delayLevel": _NUMBER,
    "deliverTimestamp": "TIMESTAMP, or BIGINT with ms since 1970",
    "messageId": _TEXT,
    "sendAfter": _NUMBER,
}
# What rows of the source have and a new message cannot be given.
_OF_THE_SOURCE: Final = frozenset(
    """brokername queueoffset commitlogoffset msgid uniqkey borntimestamp bornhost storetimestamp storehost
    reconsumetimes sysflag flag preparedtransactionoffset bodycrc""".split()
)


class InputError(ConfigError):
    """The DataFrame cannot be sent as it is."""


class InputColumns(NamedTuple):
    """The name of each column as the DataFrame spells it, by our name; `body` is there in any case."""

    names: dict[str, str]

    def has(self, name: str) -> bool:
        return name in self.names


def input_columns(schema: t.StructType, topic_option: str | None) -> InputColumns:
    """Check a DataFrame's schema before anything is sent; raises InputError."""
    known = {name.lower(): name for name in TYPES}
    names: dict[str, str] = {}
    for field in schema.fields:
        name = known.get(field.name.lower())
        if name is None:
            raise InputError(_unknown(field.name, list(known.values())))
        if not _fits(name, field.dataType):
            raise InputError(
                f'column "{field.name}" is {field.dataType.simpleString().upper()}, the sink needs {TYPES[name]}: '
                f"cast it, as in {_cast(name, field.name)}"
            )
        names[name] = field.name
    if "body" in names and "value" in names:
        raise InputError('the DataFrame has both "body" and "value", which mean the same: drop one of them')
    if "value" in names:
        names["body"] = names.pop("value")
    if "body" not in names:
        have = ", ".join(schema.fieldNames()) or "none"
        raise InputError(
            f'the DataFrame has no column "body" (or "value"), its columns are: {have}; '
            'an example is df.select(to_json(struct("*")).alias("body"))'
        )
    if topic_option is None and "topic" not in names:
        raise InputError('nothing says where to send: give .option("topic", "Orders") or a column "topic"')
    return InputColumns(names)


def _unknown(name: str, known: Sequence[str]) -> str:
    if name.lower() in _OF_THE_SOURCE:
        advice = "it tells where a message was read, which a new one cannot be given: drop it"
    else:
        meant = nearest(name, known)
        advice = f'did you mean "{meant}"?' if meant else f"it knows: {', '.join(known)}"
    return (
        f'the sink has no column "{name}"; {advice} (a fact for consumers belongs into the map "properties", all '
        "others into the body)"
    )


def _cast(name: str, given: str) -> str:
    wanted = TYPES[name].split(" or ")[0].split(",")[0] if name != "properties" else TYPES[name]
    return f"CAST({given} AS {wanted})"


def _fits(name: str, kind: t.DataType) -> bool:
    if name in ("body", "value"):
        return isinstance(kind, t.StringType | t.BinaryType)
    if name == "keys":
        return isinstance(kind, t.StringType) or (
            isinstance(kind, t.ArrayType) and isinstance(kind.elementType, t.StringType)
        )
    if name == "properties":
        return (
            isinstance(kind, t.MapType)
            and isinstance(kind.keyType, t.StringType)
            and isinstance(kind.valueType, t.StringType)
        )
    if name in ("queueId", "delayLevel", "sendAfter"):
        return isinstance(kind, t.IntegerType | t.LongType | t.ShortType | t.ByteType)
    if name == "deliverTimestamp":
        return isinstance(kind, t.TimestampType | t.LongType)
    return isinstance(kind, t.StringType)
