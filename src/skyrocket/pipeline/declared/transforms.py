"""The steps of a declared pipeline as functions from DataFrame to DataFrame."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from skyrocket.pipeline.bodies.columns import Described, decoded, json_columns, json_text, reader_of
from skyrocket.pipeline.declared.plan import Decode, Dedupe, Malformed, Watermark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MESSAGE: Final = "message"
"""The column with all else that came with a decoded body: topic, keys, tags, times, properties."""
_FIELDS: Final = "__fields"
_BAD: Final = "__malformed"
_CORRUPT: Final = "__corrupt"
_BY_READERS: Final = ("avro", "protobuf")
_CARRIED: Final = ("keys", "tags", "properties")
_TEXTS: Final = ("keys", "tags", "shardingKey", "messageId")


def parsed(rows: "DataFrame", decode: Decode) -> "DataFrame":
    """Messages with what their bodies say in `__fields`, and with `__malformed`: true when they say nothing."""
    text = F.col("body").cast("string")
    if decode.format == "text":
        fields, bad = F.struct(text.alias("text")), ~F.coalesce(F.is_valid_utf8(F.col("body")), F.lit(False))
        return rows.withColumn(_FIELDS, fields).withColumn(_BAD, bad)
    if decode.format in _BY_READERS:
        found = rows.withColumn(_FIELDS, decoded("body", reader_of(described(decode))))
        return found.withColumn(_BAD, F.col(_FIELDS).isNull())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    text = json_text("body", is_numbered=bool(decode.registry))
    fields = F.from_json(text, f"{json_columns(described(decode))}, {_CORRUPT} string", options)
    found = rows.withColumn(_FIELDS, fields)
    bad = F.col(_FIELDS).isNull() | F.col(f"{_FIELDS}.{_CORRUPT}").isNotNull()
    return found.withColumn(_BAD, bad)


def described(decode: Decode) -> Described:
    """The words of a file as those of `bodies`."""
    told = (decode.schema, decode.schema_file, decode.registry, decode.subject, decode.message)
    return Described(decode.format, *(each or "" for each in told))


def well_formed(rows: "DataFrame", decode: Decode, source_name: str, malformed: Malformed) -> "DataFrame":
    """The fields of bodies that could be read as columns, the rest in `message`; the others are counted, or fatal."""
    counted = parsed(rows, decode).observe(
        f"decode_{source_name}", F.count(F.lit(1)).alias("messages"), F.count_if(F.col(_BAD)).alias("malformed")
    )
    if malformed is Malformed.FAIL:
        counted = counted.withColumn(_BAD, F.when(F.col(_BAD), F.raise_error(_complaint(rows, source_name))))
        good = counted.filter(F.col(_BAD).isNull())
    else:
        good = counted.filter(~F.col(_BAD))
    rest = [F.col(name) for name in rows.columns if name != "body"]
    message = [F.struct(*rest).alias(MESSAGE)] if rest else []
    if decode.format != "json":
        return good.select(f"{_FIELDS}.*", *message)
    return good.withColumn(_FIELDS, F.col(_FIELDS).dropFields(_CORRUPT)).select(f"{_FIELDS}.*", *message)


def _complaint(rows: "DataFrame", source_name: str) -> "Column":
    where = [name for name in ("topic", "brokerName", "queueId", "queueOffset") if name in rows.columns]
    said = [part for name in where for part in (F.lit(f" {name}="), F.coalesce(F.col(name).cast("string"), F.lit("?")))]
    return F.concat(F.lit(f"source {source_name}: a body cannot be decoded, and onError says fail:"), *said)


def malformed_messages(rows: "DataFrame", decode: Decode) -> "DataFrame":
    """Messages whose bodies cannot be read, as they came, with their origin among the properties."""
    bad = parsed(rows, decode).filter(F.col(_BAD))
    origin = [name for name in ("topic", "brokerName", "queueId", "queueOffset") if name in rows.columns]
    pairs = [
        part
        for name in origin
        for part in (F.lit(f"ORIGIN_{name.upper()}"), F.coalesce(F.col(name).cast("string"), F.lit("")))
    ]
    properties = F.create_map(*pairs) if pairs else F.create_map().cast("map<string,string>")
    carried = [F.col(name) for name in ("keys", "tags") if name in rows.columns]
    return bad.select("body", *carried, properties.alias("properties"))


def with_watermark(rows: "DataFrame", watermark: Watermark | None) -> "DataFrame":
    return rows if watermark is None else rows.withWatermark(watermark.column, watermark.delay)


def deduplicated(rows: "DataFrame", dedupe: Dedupe) -> "DataFrame":
    """The first of each; a table without an end forgets keys when the watermark has passed them."""
    if not rows.isStreaming:
        return rows.dropDuplicates(list(dedupe.keys))
    return with_watermark(rows, dedupe.watermark).dropDuplicatesWithinWatermark(list(dedupe.keys))


def as_messages(rows: "DataFrame", message: Mapping[str, str]) -> "DataFrame":
    """What a topic is given: `body` and what was asked for beside it.

    Rows that are messages already (they have a body) keep keys, tags and properties; of others the body is their JSON.
    """
    chosen = {name: F.expr(expression) for name, expression in message.items()}
    if "body" not in chosen:
        if "body" in rows.columns:
            chosen = {name: F.col(name) for name in (*_CARRIED, "body") if name in rows.columns} | chosen
        else:
            chosen["body"] = F.to_json(F.struct(*[F.col(f"`{name}`") for name in rows.columns]))
    sent = rows.select(*[column.alias(name) for name, column in chosen.items()])
    return sent.select(*[_as_text(sent, name) if name in _TEXTS else F.col(name) for name in sent.columns])


def _as_text(rows: "DataFrame", name: str) -> "Column":
    """A number is a good key as well; several keys are an array."""
    is_list = rows.schema[name].dataType.typeName() == "array"
    return F.col(name).cast("array<string>" if is_list else "string").alias(name)
