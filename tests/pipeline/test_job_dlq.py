"""The job `dlq`: dead letters grouped by cause."""

from typing import TYPE_CHECKING, Any

import pytest

from skyrocket.pipeline.jobs import dlq
from skyrocket.pipeline.jobs.local import dlq as local
from tests.pipeline.same_reports import assert_same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(300)  # the first test of a process starts Spark, perhaps on a busy machine

NOW = 1_800_000_000_000
SCHEMA = (
    "topic string, brokerName string, queueId int, queueOffset long, msgId string, uniqKey string, keys string, "
    "tags string, ms long, reconsumeTimes int, body binary, properties map<string,string>"
)


def _letter(offset: int, group: str = "Billing", body: bytes = b"{}", times: int = 16, **properties: str) -> Any:
    place = (f"%DLQ%{group}", "a", 0, offset, f"id-{offset}", f"U{offset}", f"o-{offset}", None)
    return (*place, NOW + offset, times, body, properties)


def test_dead_letters_are_grouped_by_what_they_have_in_common(spark: "SparkSession") -> None:
    ours: Any = {"RETRY_TOPIC": "Orders", "SKY_DLQ_ERROR": "shop.OutOfStock", "SKY_DLQ_HOST": "h1@1"}
    letters = [
        _letter(0, **ours, SKY_DLQ_MESSAGE="article 17 of order 0a1b2c3d4e is gone\nsecond line"),
        _letter(1, **ours, SKY_DLQ_MESSAGE="article 4 of order 99887766ff is gone", SKY_DLQ_TRACE="Traceback …"),
        _letter(2, body=b"\xff\x00", RETRY_TOPIC="Orders", SKY_DLQ_ERROR="KeyError"),
        _letter(3, RETRY_TOPIC="Orders"),
        _letter(4, DLQ_ORIGIN_TOPIC="Payments"),
        _letter(5, group="Audit", times=3),
        ("Orders", *_letter(6)[1:]),
    ]
    rows = spark.createDataFrame(letters, SCHEMA).selectExpr("* except (ms)", "timestamp_millis(ms) AS storeTimestamp")
    report = dlq.run(rows, sample=1)
    assert_same(report, local.run(rows.toArrow(), sample=1))
    assert_same(dlq.run(rows.where("false")), local.run(rows.where("false").toArrow()))
    causes = {
        (row["group"], row["originTopic"], row["cause"]): row["letters"] for row in report.tables["causes"].to_pylist()
    }
    assert causes == {
        ("Billing", "Orders", "shop.OutOfStock: article # of order # is gone"): 2,
        ("Billing", "Orders", "KeyError"): 1,
        ("Billing", "Orders", "no cause written, tried 16 times"): 1,
        ("Billing", "Payments", "no cause written, tried 16 times"): 1,
        ("Audit", "(unknown)", "no cause written, tried 3 times"): 1,
    }
    samples = {(row["group"], row["originTopic"], row["cause"]): row for row in report.tables["samples"].to_pylist()}
    assert samples.keys() == causes.keys(), "one of each"
    newest = samples["Billing", "Orders", "shop.OutOfStock: article # of order # is gone"]
    assert (newest["messageId"], newest["traceback"], newest["body"]) == ("U1", "Traceback …", "{}")
    assert samples["Billing", "Orders", "KeyError"]["body"] == "FF00", "what is no text is shown as it is"
    assert report.findings == 6
    places = report.tables["letters"].select(list(dlq.PLACE)).to_pylist()
    assert [place["queueOffset"] for place in places] == [5, 0, 1, 2, 3, 4]
    assert report.plots[0].series["letters"][0] == 2


def test_topics_of_dead_letters_are_those_of_the_groups_or_a_pattern() -> None:
    assert dlq.dead_letter_topics(["a", "b"]) == ["%DLQ%a", "%DLQ%b"]
    assert dlq.dead_letter_topics([]) == "%DLQ%.+"
