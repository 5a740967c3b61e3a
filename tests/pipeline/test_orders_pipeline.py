"""examples/orders_pipeline as it stands: orders ▸ revenue per minute ▸ topic, lake and plot."""

import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skyrocket.model.query_report import QUERIES, report_of
from skyrocket.testing import LocalCluster
from tests import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = ROOT / "examples" / "orders_pipeline"
DEMO = ROOT / "src" / "skyrocket" / "pipeline" / "demo"


def test_the_demo_runs_the_pipeline_of_the_example() -> None:
    assert (EXAMPLE / "revenue.yml").read_bytes() == (DEMO / "revenue.yml").read_bytes()


@pytest.mark.timeout(600)
def test_orders_become_revenue_per_minute_in_a_topic_a_lake_and_a_plot(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from examples.orders_pipeline import plot, send_orders

    from skyrocket.pipeline.declared import load
    from skyrocket.pipeline.declared.frames import prepared
    from skyrocket.pipeline.declared.runner import Runner
    from skyrocket.pipeline.declared.topics_check import check_topics
    from skyrocket.pipeline.declared.writing import query_name

    with LocalCluster() as mq:
        monkeypatch.setenv("NAMESRV_ADDR", mq.name_server_address)
        monkeypatch.setenv("LAKE", str(tmp_path))
        mq.create_topic("orders")
        send_orders.main()
        located = load(EXAMPLE / "revenue.yml")
        with mq.admin() as admin:
            check_topics(located.pipeline, located.locations, admin)
        with prepared(located, mq.name_server_address, "local[2]", {}) as outputs:
            Runner(located.pipeline, outputs, mq.name_server_address, once=True).run()
        with mq.admin() as admin:
            reports = [report_of(text) for text in admin.values(QUERIES).values()]
        sent = [message.body for message in mq.messages("orders")]
        told = [json.loads(message.body) for message in mq.messages("revenue_per_minute")]

    assert sorted(report.name for report in reports if report and report.state == "ended") == sorted(
        query_name(located.pipeline, output.sink) for output in outputs
    )
    expected = _revenue_per_minute(sent)
    # The last minutes are open: an order for them may still come.
    finished = sorted(expected)[:-2]
    found = {row["minute"][:16]: (row["orders"], Decimal(str(row["revenue"]))) for row in told}
    assert len(found) == len(told)
    assert found == {minute: expected[minute] for minute in finished}
    lake = spark.read.parquet(str(tmp_path / "revenue"))
    assert {f"{row.minute:%Y-%m-%dT%H:%M}": (row.orders, row.revenue) for row in lake.collect()} == found
    report = plot.report_of(tmp_path)
    report.write(tmp_path / "report")
    assert report.tables["minutes"].num_rows == len(finished)
    assert "<svg" in (tmp_path / "report" / "report.html").read_text()


def _revenue_per_minute(bodies: list[bytes]) -> dict[str, tuple[int, Decimal]]:
    """As a few lines of Python see it: every order that can be read, once."""
    unique: dict[str, tuple[str, Decimal]] = {}
    for body in bodies:
        try:
            order = json.loads(body, parse_float=Decimal)
        except ValueError:
            continue
        unique[order["order_id"]] = (order["ts"][:16], Decimal(order["amount"]))
    minutes: dict[str, list[Decimal]] = defaultdict(list)
    for minute, amount in unique.values():
        minutes[minute].append(amount)
    return {
        minute: (len(amounts), sum(amounts, Decimal(0)).quantize(Decimal("0.01")))
        for minute, amounts in minutes.items()
    }
