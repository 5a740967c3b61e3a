"""The job `dedupe`: one record per business key."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skyrocket.errors import ConfigError
from skyrocket.pipeline.jobs import dedupe
from skyrocket.pipeline.jobs.business_key import columns_for, key_column
from skyrocket.pipeline.jobs.dedupe_results import Flow, Goal, check_stream
from skyrocket.pipeline.jobs.inputs import ALWAYS, Input, Store, Topics, Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(300)  # the first test of a process starts Spark, perhaps on a busy machine

NOW = 1_800_000_000_000
SCHEMA = (
    "topic string, brokerName string, queueId int, queueOffset long, uniqKey string, keys string, ms long, "
    "body binary, properties map<string,string>"
)


def _rows(spark: "SparkSession") -> "DataFrame":
    """Order 1 three times (a retry of the system, then the application again), 2 twice at once, 3 once, two without."""
    rows = [
        ("Orders", "a", 0, 0, "U1", "o-1", NOW, b'{"id": 1}', {"orderId": "1"}),
        ("Orders", "a", 0, 1, "U1", "o-1", NOW + 1, b'{"id": 1}', {"orderId": "1"}),
        ("Orders", "a", 1, 0, "U2", "o-1", NOW + 2, b'{"id": 1}', {"orderId": "1"}),
        ("Orders", "a", 1, 1, "U3", "o-2", NOW + 3, b'{"id": 2}', {"orderId": "2"}),
        ("Orders", "a", 1, 2, "U4", "o-2", NOW + 3, b'{"id": 2}', {"orderId": "2"}),
        ("Orders", "a", 0, 2, "U5", "o-3", NOW + 4, b'{"id": 3}', {"orderId": "3"}),
        ("Orders", "a", 0, 3, "U6", None, NOW + 5, b"no json", {}),
        ("Orders", "a", 0, 4, "U7", "", NOW + 6, b"no json", {}),
        ("Payments", "a", 0, 0, "U8", "o-1", NOW, b'{"id": 1}', {"orderId": "1"}),
    ]
    return spark.createDataFrame(rows, SCHEMA).selectExpr("* except (ms)", "timestamp_millis(ms) AS storeTimestamp")


@pytest.mark.requirement("A087")
def test_one_record_per_key_stays_and_the_others_are_listed(spark: "SparkSession") -> None:
    rows = dedupe.ranked(dedupe.keyed(_rows(spark), "keys"), "latest").cache()
    kept = {(row.topic, row.uniqKey) for row in dedupe.clean(rows).collect()}
    assert kept == {("Orders", id_) for id_ in ("U2", "U4", "U5", "U6", "U7")} | {("Payments", "U8")}
    report = dedupe.run(rows)
    gone = [
        (row["businessKey"], row["uniqKey"], row["sameMessageId"]) for row in report.tables["duplicates"].to_pylist()
    ]
    assert gone == [("o-1", "U1", False), ("o-1", "U1", False), ("o-2", "U3", False)]
    assert report.findings == 3
    topics = {row["topic"]: row for row in report.tables["topics"].to_pylist()}
    assert (topics["Orders"]["records"], topics["Orders"]["keys"], topics["Orders"]["withoutKey"]) == (8, 3, 2)
    assert topics["Payments"]["duplicates"] == 0, "topics are apart from each other"


def test_keys_come_from_columns_properties_and_json_and_the_first_can_stay(spark: "SparkSession") -> None:
    messages = _rows(spark)
    with_keys = messages.select(
        *(key_column(spec).alias(spec[:4]) for spec in ("json:$.id", "property:orderId", "keys"))
    )
    assert [tuple(row) for row in with_keys.where("json = '1'").collect()] == [("1", "1", "o-1")] * 4
    rows = dedupe.ranked(dedupe.keyed(messages, "json:$.id"), "first").where("topic = 'Orders'")
    assert {row.uniqKey for row in dedupe.clean(rows).collect()} == {"U1", "U3", "U5", "U6", "U7"}
    repeated = dedupe.duplicates(rows).select("uniqKey", "sameMessageId").collect()
    assert [tuple(row) for row in repeated] == [("U1", True), ("U2", False), ("U4", False)]


@pytest.mark.parametrize(
    ("spec", "advice"),
    [
        ("key", "did you mean keys"),
        ("json:id", r"json:\$.order.id"),
        ("body", "write keys"),
        ("property:", "write keys"),
    ],
)
def test_a_key_that_no_message_has_is_refused(spec: str, advice: str) -> None:
    with pytest.raises(ConfigError, match=advice):
        key_column(spec)


def test_only_the_columns_of_the_key_are_read() -> None:
    assert columns_for("property:orderId") == ("properties",)
    assert columns_for("json:$.id") == ("body",)
    assert columns_for("uniqKey") == ("uniqKey",)


def test_a_stream_says_what_it_needs() -> None:
    topics, flow = Topics({"namesrvAddr": "x:1"}), Flow("10 minutes", Path("c"), once=True)
    goal = Goal(Path("p"), None, {})
    check_stream(topics, ALWAYS, "first", goal, flow)
    cases: list[tuple[Input, Window, Goal, Flow, str]] = [
        (Store(Path("s")), ALWAYS, goal, flow, "--store"),
        (topics, Window(1, 2), goal, flow, "--since"),
        (topics, ALWAYS, Goal(None, None, {}), flow, "one place"),
        (topics, ALWAYS, goal, Flow("1 minute", None, once=False), "--checkpoint"),
    ]
    for source, window, target, stream, said in cases:
        with pytest.raises(ConfigError, match=said):
            check_stream(source, window, "first", target, stream)
    with pytest.raises(ConfigError, match="keeps the first"):
        check_stream(topics, ALWAYS, "latest", goal, flow)
