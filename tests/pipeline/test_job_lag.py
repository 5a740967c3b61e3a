"""The job `lag`: backlog in messages and seconds, outlook, stuck and skewed queues, sizing."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.errors import ConfigError
from skyrocket.pipeline.jobs import lag
from skyrocket.pipeline.jobs.lag.job import store_samples
from skyrocket.pipeline.jobs.lag.samples import Committed, Sample, committed_in, samples_table
from skyrocket.pipeline.jobs.lag.sizing import (
    Handling,
    concurrency,
    nodes_needed,
    optimal_threads,
    queues_needed,
    size,
)
from skyrocket.pipeline.jobs.local import lag as local
from tests.pipeline.same_reports import assert_same

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(300)  # the first test of a process starts Spark, perhaps on a busy machine

NOW = 1_800_000_000_000


# ── formulas ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("A092")
def test_the_best_number_of_threads_and_nodes_is_that_of_the_formulas() -> None:
    assert optimal_threads(4, 5, 0) == 4, "nobody waits: a thread per core"
    assert optimal_threads(4, 5, 45) == 40, "C × (T1 + T2) / T1"
    assert Handling(5, 45, cores=4).threads_per_node == 40
    assert Handling(5, 45, cores=4).node_rate == 800
    assert nodes_needed(800, 800) == 1
    assert nodes_needed(801, 800) == 2, "peak / rate of a node, rounded up"


@given(st.integers(1, 64), st.floats(0.1, 100, allow_nan=False), st.floats(0, 1000, allow_nan=False), st.floats(0, 1e6))
def test_the_nodes_that_are_asked_for_can_take_the_peak(cores: int, cpu: float, io: float, peak: float) -> None:
    handling = Handling(cpu, io, cores)
    nodes = nodes_needed(peak, handling.node_rate)
    assert nodes * handling.node_rate >= peak * (1 - 1e-6)
    assert nodes == 1 or (nodes - 1) * handling.node_rate < peak, "and one node less cannot"


@pytest.mark.requirement("A090")
def test_concurrency_is_threads_times_nodes_but_the_number_of_queues_in_order() -> None:
    assert concurrency(20, 3, 8, ordered=False) == 60
    assert concurrency(20, 3, 8, ordered=True) == 8
    assert concurrency(20, 3, 1, ordered=True) == 1, "one queue is global order"
    assert queues_needed(800, Handling(5, 45), 2, ordered=True) == 40, "a queue handles one message at a time"
    assert queues_needed(800, Handling(5, 45), 12, ordered=False) == 12, "each consumer needs a queue"


def test_sizing_says_when_there_are_too_few_queues() -> None:
    handling = Handling(5, 45, cores=4)
    assert "16 queues are enough" in size(1000, handling, 16, ordered=False).advice
    assert "50 queues instead of 16" in size(1000, handling, 16, ordered=True).advice
    drained = size(100, handling, 8, ordered=False, backlog=72_000, drain_s=60)
    assert (drained.rate, drained.nodes) == (1300, 2)


def test_handling_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="--cpu-ms"):
        Handling(0, 10)
    with pytest.raises(ConfigError, match="at least one core"):
        Handling(1, 1, cores=0)


# ── offsets of a store directory ─────────────────────────────────────────────────────────────────────────────────────


def test_committed_offsets_are_read_from_the_brokers_file(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    path = tmp_path / "config" / "consumerOffset.json"
    with pytest.raises(ConfigError, match="does not exist"):
        committed_in(tmp_path, [])
    path.write_text('{"offsetTable":{"Orders@Billing":{0:5,1:7},"Orders@Audit":{0:1},"%RETRY%Billing@Billing":{0:2}}}')
    assert committed_in(tmp_path, ["Billing"], ["Orders"]) == [
        Committed("Billing", "Orders", 0, 5),
        Committed("Billing", "Orders", 1, 7),
    ]
    with pytest.raises(ConfigError, match="no offsets of group Biling"):
        committed_in(tmp_path, ["Biling"])
    path.write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        committed_in(tmp_path, [])


def test_only_the_messages_at_which_a_group_stood_are_read() -> None:
    table = samples_table(
        [
            Sample(NOW, "g", "t", "b", 0, 100, 10),
            Sample(NOW + 1, "g", "t", "b", 0, 100, 30),
            Sample(NOW, "h", "t", "b", 0, 100, 20),
            Sample(NOW, "g", "t", "b", 1, 50, 50),
            Sample(NOW, "g", "t", "b", 2, 9, -1),
        ]
    )
    assert lag.offsets_to_read(table) == ({"t": {"b": {"0": 10, "2": 0}}}, {"t": {"b": {"0": 31, "2": 1}}})


# ── ten rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _frames(spark: "SparkSession") -> "tuple[DataFrame, DataFrame]":
    """Billing catches up in queue 0 and is stuck in queue 1, where retention has passed it; Audit is done."""
    samples = [
        Sample(NOW, "Billing", "Orders", "a", 0, 1000, 100),
        Sample(NOW + 10_000, "Billing", "Orders", "a", 0, 1100, 600),
        Sample(NOW, "Billing", "Orders", "a", 1, 5000, 2),
        Sample(NOW + 10_000, "Billing", "Orders", "a", 1, 5000, 2),
        Sample(NOW, "Billing", "Orders", "a", 2, 10, 10),
        Sample(NOW + 10_000, "Billing", "Orders", "a", 2, 10, 10),
        Sample(NOW, "Audit", "Orders", "a", 0, 1000, 1000),
        Sample(NOW + 10_000, "Audit", "Orders", "a", 0, 1100, 1100),
    ]
    stored = [("Orders", "a", 0, 100, NOW - 60_000), ("Orders", "a", 0, 600, NOW - 5_000)]
    stored += [("Orders", "a", 1, 5, NOW - 3_600_000), ("Orders", "a", 1, 6, NOW)]
    rows = spark.createDataFrame(stored, "topic string, brokerName string, queueId int, queueOffset long, ms long")
    messages = rows.selectExpr("* except (ms)", "timestamp_millis(ms) AS storeTimestamp")
    return spark.createDataFrame(samples_table(samples)), messages


def test_a_backlog_is_messages_and_seconds_with_the_time_until_it_is_gone(spark: "SparkSession") -> None:
    plan = lag.Plan(Handling(5, 45, cores=4), peak_rate=900)
    report = lag.run(*_frames(spark), lag.LagLimits(messages=5000, skew_messages=1000), plan, {"Audit"})
    groups = {row["group"]: row for row in report.tables["groups"].to_pylist()}
    billing, audit = groups["Billing"], groups["Audit"]
    assert (billing["messages"], billing["seconds"], billing["queues"]) == (500 + 4998, 3610, 3)
    assert (billing["arriving"], billing["consuming"]) == (10, 50)
    assert billing["catchUpSeconds"] == pytest.approx(5498 / 40)
    assert (billing["state"], audit["state"]) == ("catching up", "caught up")
    assert (audit["messages"], audit["seconds"], audit["catchUpSeconds"]) == (0, 0, 0)
    over_time = [
        (row["group"], row["messages"], row["seconds"]) for row in report.tables["backlog_over_time"].to_pylist()
    ]
    assert over_time == [
        ("Audit", 0, 0),
        ("Billing", 900 + 4998, 3600),
        ("Audit", 0, 0),
        ("Billing", 500 + 4998, 3610),
    ]
    stuck = report.tables["stuck_queues"].to_pylist()
    assert [(row["group"], row["queueId"], row["lag"]) for row in stuck] == [("Billing", 1, 4998)]
    assert [(row["queueId"], row["lag"]) for row in report.tables["skewed_queues"].to_pylist()] == [(1, 4998)]
    assert report.findings == 3
    sizes = {row["group"]: row for row in report.tables["sizing"].to_pylist()}
    assert (sizes["Billing"]["threads_per_node"], sizes["Billing"]["nodes"]) == (40, 2)
    assert (sizes["Audit"]["ordered"], sizes["Audit"]["queues"], sizes["Audit"]["concurrency"]) == (True, 45, 45)
    assert [list(plot.series) for plot in report.plots] == [["Billing ← Orders", "Audit ← Orders"]] * 2


def test_one_sample_tells_no_rates_and_nobody_is_stuck(spark: "SparkSession") -> None:
    samples, messages = _frames(spark)
    report = lag.run(samples.where(f"sampledMs = {NOW}"), messages, lag.LagLimits(seconds=60, skew_factor=10))
    states = {row["group"]: row["state"] for row in report.tables["groups"].to_pylist()}
    assert states == {"Billing": "one sample: rates unknown", "Audit": "caught up"}
    assert report.tables["stuck_queues"].num_rows == 0
    assert [row["group"] for row in report.tables["over_limits"].to_pylist()] == ["Billing"]
    assert report.findings == 1


@pytest.mark.parametrize("samples", [f"sampledMs = {NOW}", "true", "false"])
def test_a_backlog_is_the_same_without_spark(spark: "SparkSession", samples: str) -> None:
    stood, messages = _frames(spark)
    chosen = stood.where(samples)
    rules = (lag.LagLimits(messages=5000, skew_messages=1000), lag.Plan(Handling(5, 45, cores=4)), {"Audit"})
    assert_same(lag.run(chosen, messages, *rules), local.run(chosen.toArrow(), messages.toArrow(), *rules))
    empty = messages.where("false")
    assert_same(lag.run(chosen, empty, *rules), local.run(chosen.toArrow(), empty.toArrow(), *rules))


def test_what_a_store_says_of_a_group_is_the_same_without_spark(spark: "SparkSession") -> None:
    _, messages = _frames(spark)
    committed = [Committed("Billing", "Orders", 0, 100), Committed("Billing", "Nowhere", 0, 1)]
    found = store_samples(spark, committed, messages).toArrow()
    assert found.to_pylist() == local.store_samples(committed, messages.toArrow()).to_pylist() != []
