"""The audit job: a sound store has no findings, and every planted fault is found and named."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from skyrocket.config.sections import StoreConfig
from skyrocket.errors import ConfigError
from skyrocket.format.dispatch_claims import QueueName
from skyrocket.format.properties import encode_properties
from skyrocket.format.queue_entry import ENTRY, ENTRY_SIZE
from skyrocket.pipeline.audit.findings import MOST_ROWS, Finding, Findings, table
from skyrocket.pipeline.audit.index_files import missing_from
from skyrocket.pipeline.audit.log_task import LogOutcome, QueuePart
from skyrocket.pipeline.jobs import audit
from skyrocket.pipeline.jobs.audit import AuditRules, QueueRange, compare_offsets, steps_between
from skyrocket.pipeline.jobs.local import audit as local
from skyrocket.pipeline.rebuild.rules import RebuildRules
from skyrocket.pipeline.report import Report
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from tests.golden_store import GoldenStore
from tests.pipeline.same_reports import assert_same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFIG = StoreConfig(commit_log_file_size=65_536, consume_queue_file_size=2000, index_slots=50, index_entries=3000)
RULES = AuditRules(RebuildRules(consume_queue_file_size=2000, index_slots=50, index_entries=3000), settle_seconds=0)
ORDERS = QueueName("Orders", 1)


# ── pure parts ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_groups_progress_is_compared_with_what_the_queue_has() -> None:
    queues = {("Orders", 0): QueueRange(10, 20), ("Orders", 1): QueueRange(0, 5)}
    offsets = {
        "Orders@billing": {0: 10, 1: 5},
        "Orders@slow": {0: 7},
        "Orders@odd": {1: 6},
        "Gone@billing": {0: 3, 1: 0},
    }
    assert [(each.kind, each.topic, each.queue_id, each.queue_offset) for each in compare_offsets(offsets, queues)] == [
        ("offset-behind", "Orders", 0, 7),
        ("offset-ahead", "Orders", 1, 6),
        ("orphaned-offset", "Gone", 0, 3),
    ]


def test_queue_offsets_are_followed_from_split_to_split() -> None:
    def split(*parts: tuple[int, int]) -> LogOutcome:
        return LogOutcome(parts=[QueuePart(ORDERS, first, last, 100) for first, last in parts])

    assert list(steps_between([split((0, 4)), split(), split((5, 9))])) == []
    kinds = [each.kind for each in steps_between([split((0, 4)), split((6, 9)), split((9, 9)), split((3, 4))])]
    assert kinds == ["lost", "duplicate", "out-of-order"]


def test_pairs_are_compared_as_often_as_they_occur() -> None:
    def pairs(*rows: tuple[int, int]) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
        return np.array(rows, np.int64).reshape(-1, 2)

    assert missing_from(pairs((5, 1), (5, 1), (7, 2)), pairs((5, 1), (7, 2))).tolist() == [[5, 1]]
    assert missing_from(pairs((5, 1)), pairs()).tolist() == [[5, 1]]
    assert missing_from(pairs(), pairs((5, 1))).tolist() == []
    assert missing_from(pairs((1 << 40, 2**31 - 1)), pairs((1 << 40, 2**31 - 1))).tolist() == []


def test_findings_are_all_counted_and_the_first_are_kept() -> None:
    findings = Findings()
    for number in range(MOST_ROWS + 5):
        findings.add(Finding("lost", "Orders", 0, number))
    other = Findings()
    other.add(Finding("damaged", physical_offset=7, detail="torn"))
    findings.merge(other)
    assert findings.total == MOST_ROWS + 6
    assert findings.counts == {"lost": MOST_ROWS + 5, "damaged": 1}
    assert table(findings).num_rows == MOST_ROWS
    assert table(other).to_pylist()[0]["detail"] == "torn"


# ── with Spark ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    with MessageStore(path, CONFIG) as ours:
        for number in range(600):
            properties = {"UNIQ_KEY": f"unique-{number}", "KEYS": f"key-{number % 500} all", "TAGS": f"Tag{number % 3}"}
            ours.put(PutMessage("Orders", number % 4, b"x" * (number % 300), encode_properties(properties)))
    return path


def kinds(report: Report) -> dict[str, int]:
    return {row["kind"]: row["count"] for row in report.tables["kinds"].to_pylist() if row["count"]}


@pytest.mark.requirement("B025")
def test_a_sound_store_has_no_findings(spark: "SparkSession", store: Path) -> None:
    report = audit.run(spark, store, RULES, split_bytes=20_000)
    assert kinds(report) == {}
    assert report.findings == 0
    (summary,) = report.tables["audit"].to_pylist()
    assert (summary["records"], summary["entries"], summary["queues"]) == (600, 600, 4)


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x55
    path.write_bytes(data)


def queue_file(store: Path, queue_id: int, number: int = 0) -> Path:
    return store / "consumequeue" / "Orders" / str(queue_id) / f"{number * 2000:020d}"


def damage_a_body(store: Path) -> None:
    (first, *_) = sorted((store / "commitlog").iterdir())
    data = first.read_bytes()
    position = 0
    for _ in range(17):
        position += int.from_bytes(data[position : position + 4], "big")
    flip(first, position + 88 + 3)  # in the body of message 17


def point_elsewhere(store: Path) -> None:
    data = bytearray(queue_file(store, 1).read_bytes())
    ENTRY.pack_into(data, 5 * ENTRY_SIZE, *ENTRY.unpack_from(data, 6 * ENTRY_SIZE))
    queue_file(store, 1).write_bytes(data)


def lose_a_queue_file(store: Path) -> None:
    queue_file(store, 2, 1).unlink()


def damage_an_index_entry(store: Path) -> None:
    (first, *_) = sorted((store / "index").iterdir())
    flip(first, 40 + 4 * 50 + 20 * 10 + 3)


def run_ahead(store: Path) -> None:
    (store / "config").mkdir(exist_ok=True)
    (store / "config" / "consumerOffset.json").write_text('{"offsetTable":{"Orders@billing":{0:151,1:150}}}')


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        # a record that cannot be trusted is not counted as there: its queue offset, entry and keys point to nothing
        (damage_a_body, {"damaged": 1, "lost": 1, "orphaned-index": 3}),
        (point_elsewhere, {"wrong-entry": 1, "orphaned-entry": 1}),
        (lose_a_queue_file, {"not-in-queue": 50}),
        (damage_an_index_entry, {"not-in-index": 1, "orphaned-index": 1}),
        (run_ahead, {"offset-ahead": 1}),
    ],
)
def test_a_planted_fault_is_found(
    spark: "SparkSession", store: Path, plant: Callable[[Path], None], expected: dict[str, int]
) -> None:
    plant(store)
    report = audit.run(spark, store, RULES, split_bytes=20_000)
    assert_same(report, local.run(store, RULES, split_bytes=20_000))
    found = kinds(report)
    if plant is damage_a_body:
        found.pop("orphaned-index", None)  # how many keys the index has of one message is its own affair
        expected = {kind: count for kind, count in expected.items() if kind != "orphaned-index"}
    assert found == expected


@pytest.mark.requirement("A086")
def test_messages_that_are_there_twice_are_found_by_id_and_by_business_key(spark: "SparkSession", store: Path) -> None:
    with MessageStore(store, CONFIG) as ours:
        properties = encode_properties({"UNIQ_KEY": "unique-7", "KEYS": "other"})
        ours.put(PutMessage("Orders", 3, b"again", properties))
        ours.put(PutMessage("Payments", 0, b"not the same topic", properties))
    report = audit.run(spark, store, RULES)
    assert kinds(report) == {"same-id": 1}
    assert "2 messages with 'unique-7'" in report.tables["findings"].to_pylist()[0]["detail"]
    assert_same(report, local.run(store, RULES))
    by_key = audit.run(spark, store, replace(RULES, business_key="keys"))
    assert kinds(by_key) == {"same-id": 1, "same-key": 100}
    assert_same(by_key, local.run(store, replace(RULES, business_key="keys")))
    by_property = replace(RULES, business_key="property:TAGS")
    assert_same(audit.run(spark, store, by_property), local.run(store, by_property))
    with pytest.raises(ConfigError, match=r"json:.* needs Spark"):
        local.run(store, replace(RULES, business_key="json:$.id"))


@pytest.mark.parametrize("golden", [GoldenStore("5.4.0", "clean"), GoldenStore("4.9.7", "clean")], ids=str)
def test_a_store_of_apache_rocketmq_is_sound(golden: GoldenStore, spark: "SparkSession", tmp_path: Path) -> None:
    config = golden.config_of_broker()
    rebuild = RebuildRules(index_slots=config.index_slots, index_entries=config.index_entries)
    store, rules = golden.extract(tmp_path / "rocketmq"), AuditRules(rebuild, settle_seconds=0)
    report = audit.run(spark, store, rules)
    assert_same(report, local.run(store, rules))
    assert set(kinds(report)) <= {"same-id"}, report.tables["findings"].to_pylist()
