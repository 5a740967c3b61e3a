"""`skyrocket pipeline dedupe`: one record per business key, the first or the latest; the others as a table.

    batch       a window function over all rows: first or latest, exact
    stream      dropDuplicatesWithinWatermark: the first of each key within a time; the latest is known only at the end

A message without a key is the same as no other: it stays. Order is store time, then broker, queue and offset.

A finding is a duplicate.
"""

from typing import TYPE_CHECKING, Final, Literal

from pyspark.sql import Window
from pyspark.sql import functions as fn

from skyrocket.pipeline.jobs.business_key import key_column
from skyrocket.pipeline.jobs.tables import table
from skyrocket.pipeline.report import Plot, Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Keep = Literal["first", "latest"]

KEY: Final = "businessKey"
PLACE: Final = ("topic", "brokerName", "queueId", "queueOffset")
NEEDED_COLUMNS: Final = (*PLACE, "storeTimestamp", "uniqKey")
_MOST_DUPLICATES: Final = 100_000


def keyed(messages: "DataFrame", spec: str) -> "DataFrame":
    """Messages with their business key as a column."""
    return messages.withColumn(KEY, key_column(spec))


def ranked(rows: "DataFrame", keep: Keep) -> "DataFrame":
    """With `copy`: 1 for the record that stays. Records without a key are all their own first."""
    order = [fn.col(name) for name in ("storeTimestamp", "brokerName", "queueId", "queueOffset")]
    window = Window.partitionBy("topic", KEY).orderBy(*([each.desc() for each in order] if keep == "latest" else order))
    return rows.withColumn("copy", fn.when(fn.col(KEY).isNull(), 1).otherwise(fn.row_number().over(window)))


def clean(rows: "DataFrame") -> "DataFrame":
    """Of ranked rows, those that stay, as they came."""
    return rows.where(fn.col("copy") == 1).drop("copy", KEY)


def duplicates(rows: "DataFrame") -> "DataFrame":
    """Of ranked rows, those that go, each with the place of the one that stays, and whether both have one message id.

    The same id: a producer's retry, a recovery or a resend repeated it. Another id: the application sent it twice.
    """
    stays = rows.where(fn.col("copy") == 1).select(
        "topic",
        KEY,
        fn.col("uniqKey").alias("keptId"),
        fn.struct(fn.col("brokerName"), fn.col("queueId"), fn.col("queueOffset")).alias("kept"),
    )
    goes = rows.where(fn.col("copy") > 1).select(*PLACE, KEY, "storeTimestamp", "uniqKey", "copy")
    joined = goes.join(stays, ["topic", KEY])
    same_id = fn.coalesce(fn.col("uniqKey") == fn.col("keptId"), fn.lit(False))
    return joined.withColumn("sameMessageId", same_id).drop("keptId").orderBy("topic", KEY, "copy")


def summary(rows: "DataFrame") -> "DataFrame":
    """Of ranked rows, per topic: records, keys, duplicates, and records without a key."""
    return (
        rows.groupBy("topic")
        .agg(
            fn.count("*").alias("records"),
            fn.countDistinct(KEY).alias("keys"),
            fn.sum((fn.col("copy") > 1).cast("long")).alias("duplicates"),
            fn.sum(fn.col(KEY).isNull().cast("long")).alias("withoutKey"),
        )
        .orderBy(fn.desc("duplicates"), "topic")
    )


def first_within(messages: "DataFrame", spec: str, delay: str) -> "DataFrame":
    """A stream of messages → the same without repetitions of a key that come within the delay (as `10 minutes`)."""
    rows = keyed(messages, spec).withWatermark("storeTimestamp", delay)
    # Null is a value for Spark's duplicates; a message without a key is given one that nobody else has.
    place = fn.concat_ws("/", *PLACE)
    own = fn.coalesce(fn.concat(fn.lit("k"), fn.col(KEY)), fn.concat(fn.lit("p"), place))
    return rows.withColumn(KEY, own).dropDuplicatesWithinWatermark(["topic", KEY]).drop(KEY)


def run(rows: "DataFrame") -> Report:
    """The report about ranked rows (cache them: the clean table is made of the same)."""
    tables = {"topics": table(summary(rows)), "duplicates": table(duplicates(rows), _MOST_DUPLICATES)}
    count = sum(tables["topics"]["duplicates"].to_pylist())
    without = sum(tables["topics"]["withoutKey"].to_pylist())
    notes = ["sameMessageId: a repetition by the system (retry, recovery); otherwise the application sent it twice"]
    if without:
        notes.append(f"{without:,} records have no such key and stay")
    if tables["duplicates"].num_rows < count:
        notes.append(f"the table has the first {_MOST_DUPLICATES:,} of {count:,} duplicates")
    found = tables["topics"].to_pylist()
    series = {name: [float(row[name]) for row in found] for name in ("keys", "duplicates")}
    plot = Plot("Keys and duplicates by topic", "bar", [row["topic"] for row in found], series, "records")
    return Report("Duplicates", tables, [plot], count, notes, {"duplicates": count})
