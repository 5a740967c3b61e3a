"""The job `trace`: from trace lines to latencies, retries, slow consumers, hot keys and queue skew."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.errors import ConfigError
from skyrocket.format.trace import (
    CallBegan,
    CallEnded,
    CallOutcome,
    SendKind,
    Sent,
    TraceEvent,
    encode_event,
)
from skyrocket.pipeline.jobs import trace
from skyrocket.pipeline.jobs.local import trace as local
from skyrocket.pipeline.jobs.trace_events import DAMAGED, events, rows_of_body
from tests.pipeline.same_reports import assert_same

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(300)  # the first test of a process starts Spark, perhaps on a busy machine

NOW = 1_800_000_000_000
SCHEMA = "body binary, bornHost string"
OLDER_END = "SubAfter\x01call-1\x01m1\x0150\x01true\x01o-1\x02"


def _sent(message_id: str, at: int, keys: str = "o-1", cost_ms: int = 4) -> Sent:
    return Sent(
        *(NOW + at, "region", "Shop", "Orders", message_id, None, keys, "10.0.0.1:10911", 10, cost_ms),
        *(SendKind.NORMAL, None, True),
    )


def _call(message_id: str, number: int, begin: int, end: int, ok: bool, group: str = "Billing") -> list[TraceEvent]:
    request = f"{group}-{message_id}-{number}"
    outcome = CallOutcome.SUCCESS if ok else CallOutcome.EXCEPTION
    return [
        CallBegan(NOW + begin, "region", group, request, message_id, number, "o-1"),
        CallEnded(request, message_id, end - begin, ok, "o-1", outcome, NOW + end, group),
    ]


def _traces(spark: "SparkSession") -> "DataFrame":
    fast, slow = "10.0.0.7:50001", "10.0.0.8:50002"
    bodies: list[tuple[list[TraceEvent], str]] = [
        ([_sent("m1", 0), _sent("m2", 100), _sent("m3", 200, keys="o-9 o-1"), _sent("m4", 300, keys="")], "10.0.0.5:1"),
        (_call("m1", 0, 10, 12, ok=True), fast),
        ([*_call("m2", 0, 120, 130, ok=False), *_call("m2", 1, 1130, 1140, ok=True)], fast),
        ([*_call("m3", 0, 210, 710, ok=True)], slow),
        (_call("m1", 0, 20, 25, ok=True, group="Audit"), fast),
    ]
    rows: list[tuple[bytes, str]] = [("".join(map(encode_event, events)).encode(), host) for events, host in bodies]
    return spark.createDataFrame([*rows, (b"Pub\x01too\x01short\x02", fast)], SCHEMA)


def _messages(spark: "SparkSession") -> "DataFrame":
    stored = [("m1", 0, NOW + 2), ("m2", 0, NOW + 103), ("m3", 0, NOW + 201), ("m4", 1, NOW + 301)]
    rows: list[tuple[Any, ...]] = [("Orders", "a", queue, message_id, at) for message_id, queue, at in stored]
    rows.append(("%RETRY%Billing", "a", 0, "m2", NOW + 1100))
    schema = "topic string, brokerName string, queueId int, uniqKey string, ms long"
    return spark.createDataFrame(rows, schema).selectExpr("* except (ms)", "timestamp_millis(ms) AS storeTimestamp")


def _stage(report: Any, table: str, stage: str, **by: str) -> dict[str, Any]:
    (row,) = [
        row
        for row in report.tables[table].to_pylist()
        if row["stage"] == stage and all(row[name] == value for name, value in by.items())
    ]
    return {name: row[name] for name in ("count", "p50", "max")}


def test_traces_become_latencies_of_each_stage_and_what_is_odd(spark: "SparkSession") -> None:
    limits = trace.TraceLimits(hot_count=2, hot_share=0.5, skew_factor=1.4, skew_count=3)
    report = trace.run(_traces(spark), _messages(spark), limits)
    assert_same(report, local.run(_traces(spark).toArrow(), _messages(spark).toArrow(), limits))
    assert _stage(report, "latency_by_topic", "send", topic="Orders") == {"count": 4, "p50": 1.5, "max": 3}
    billing = {"topic": "Orders", "group": "Billing"}
    assert _stage(report, "latency_by_group", "wait", **billing) == {"count": 3, "p50": 9, "max": 17}
    assert _stage(report, "latency_by_group", "handle", **billing) == {"count": 3, "p50": 10, "max": 500}
    assert _stage(report, "latency_by_group", "end to end", **billing) == {"count": 3, "p50": 510, "max": 1040}
    assert _stage(report, "latency_by_client", "handle", group="Billing", client="10.0.0.8")["max"] == 500
    retries = {row["group"]: row for row in report.tables["retries"].to_pylist()}
    assert {name: retries["Billing"][name] for name in ("messages", "calls", "failedCalls", "calledAgain")} == {
        "messages": 3,
        "calls": 4,
        "failedCalls": 1,
        "calledAgain": 1,
    }
    assert (retries["Billing"]["neverSucceeded"], retries["Billing"]["mostRetries"]) == (0, 1)
    assert [(row["group"], row["client"]) for row in report.tables["slow_consumers"].to_pylist()] == [
        ("Billing", "10.0.0.8")
    ]
    assert [(row["key"], row["count"], row["isHot"]) for row in report.tables["hot_keys"].to_pylist()] == [
        ("o-1", 3, True)
    ]
    skew = [(row["topic"], row["queueId"], row["count"]) for row in report.tables["queue_skew"].to_pylist()]
    assert skew == [("Orders", 0, 3)], "a queue with three of four messages; retry topics have one queue"
    assert "Pub has 2 fields" in report.tables["damaged_traces"]["reason"][0].as_py()
    assert report.facts["counts"] == {
        "slow consumers": 1,
        "hot keys": 1,
        "skewed queues": 1,
        "unreadable traces": 1,
    }
    assert report.findings == 4
    assert report.plots[0].x == ["Audit ← Orders", "Billing ← Orders"]


def test_without_the_messages_the_producers_answer_stands_for_the_store_time(spark: "SparkSession") -> None:
    told = events(_traces(spark))
    rows = trace.journeys(trace.sends(told), trace.calls(told)).where("messageId IN ('m1', 'm4')").collect()
    found = sorted((row.messageId, row.group or "", row.sendMs, row.waitMs, row.endToEndMs) for row in rows)
    assert found == [("m1", "Audit", 4, 16, 25), ("m1", "Billing", 4, 6, 12), ("m4", "", 4, None, None)]


def test_traces_alone_say_the_same_without_spark(spark: "SparkSession") -> None:
    """Calls of a message whose send was not traced, a call that runs, and an end as older clients tell it."""
    more: list[tuple[bytes, str]] = [
        ("".join(map(encode_event, _call("m9", 0, 5, 9, ok=True))).encode(), "10.0.0.7:1"),
        (encode_event(CallBegan(NOW, "region", "Late", "call-1", "m1", 0, "o-1")).encode(), "10.0.0.7:1"),
        (OLDER_END.encode(), "10.0.0.7:1"),
        (encode_event(CallBegan(NOW, "region", "Late", "call-2", "m2", 3, "o-1")).encode(), "10.0.0.9:1"),
    ]
    traces = _traces(spark).union(spark.createDataFrame(more, SCHEMA))
    limits = trace.TraceLimits(hot_count=1)
    assert_same(trace.run(traces, None, limits), local.run(traces.toArrow(), None, limits))


def test_a_body_that_is_no_trace_becomes_a_row_that_says_so() -> None:
    assert [row["kind"] for row in rows_of_body(b"\xff\xfe")] == [DAMAGED]
    assert rows_of_body(None) == []
    (row,) = rows_of_body(OLDER_END.encode())
    assert (row["kind"], row["timeMs"], row["costMs"], row["outcome"]) == ("call ended", None, 50, "SUCCESS")


@given(st.binary(max_size=200))
def test_any_bytes_are_rows_of_the_same_columns(body: bytes) -> None:
    for row in rows_of_body(body):
        assert row["kind"] == DAMAGED or set(row) == {
            *("kind", "timeMs", "group", "topic", "messageId", "tags", "keys", "storeHost", "bodyLength", "costMs"),
            *("requestId", "retryTimes", "succeeded", "clientHost", "outcome", "reason"),
        }


def test_a_consumer_is_slow_beside_the_others_of_its_group_alone() -> None:
    rows = [("g", "a", 10.0), ("g", "b", 12.0), ("g", "c", 100.0), ("alone", "d", 9000.0), ("quick", "e", 1.0)]
    rows.append(("quick", "f", 9.0))
    names, clients, p90 = zip(*rows, strict=True)
    table = pa.table({"group": names, "client": clients, "calls": [5] * len(rows), "p90": p90})
    slow = trace.slow_consumers(table, trace.TraceLimits(slow_factor=3, slow_ms=10)).to_pylist()
    assert slow == [{"group": "g", "client": "c", "calls": 5, "p90": 100.0, "othersP90": 11.0}]


def test_limits_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        trace.TraceLimits(slow_factor=0.5)
