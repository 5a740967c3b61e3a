"""deliveryGuarantee=exactly-once: nothing of a batch is seen before it is decided, and all of it once afterwards."""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyrocket.client.sending.queue_selector import index_by_hash
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_sink import queue_senders, stored_ids, writers
from skyrocket.pipeline.topic_sink.batch_records import BatchRecords, RecordsError
from skyrocket.pipeline.topic_sink.connection import SinkClient
from skyrocket.pipeline.topic_sink.input_columns import InputColumns, InputError
from skyrocket.pipeline.topic_sink.outbox import refuse_times
from skyrocket.pipeline.topic_sink.report import TaskReport
from skyrocket.testing import LocalCluster
from tests.pipeline.sink_tasks import QUERY, Died, Sink, bodies, close_connections
from tests.pipeline.test_topic_sink_model import FAULTS, InMemory, TopicInMemory


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_ids, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(queue_senders, "_FIRST_PAUSE", 0.0)


@pytest.fixture
def orders(rocketmq: LocalCluster) -> Iterator[LocalCluster]:
    rocketmq.create_topic("Orders", queues=4)
    yield rocketmq
    close_connections()


@pytest.fixture
def sink(orders: LocalCluster, tmp_path: Path) -> Sink:
    return Sink(orders, str(tmp_path), deliveryGuarantee="exactly-once")


def test_rows_are_seen_when_the_batch_is_committed_and_not_before(orders: LocalCluster, sink: Sink) -> None:
    rows = [f"row {number}" for number in range(50)]
    with pytest.raises(Died):
        sink.task(rows[:20], partition=0, dies_after=10)
    reports = [sink.task(rows[:20], partition=0, attempt=1), sink.task(rows[20:], partition=1)]
    sink.task(rows[20:], partition=1, attempt=1)  # as speculation would: its file is not the one that was reported
    assert bodies(orders) == Counter()
    sink.commit(*reports)
    assert bodies(orders) == Counter(rows)
    (record,) = Path(sink.location).rglob("0.committed")
    told = json.loads(record.read_text())
    assert (told["messages"], told["foundStored"], told["mostOfAQueue"] - told["leastOfAQueue"] <= 2) == (50, 0, True)
    assert [path.name for path in record.parent.iterdir()] == ["0.committed"], "nothing is left behind"


def test_rows_of_a_key_keep_their_order_in_javas_queue(orders: LocalCluster, sink: Sink) -> None:
    rows = [{"body": f"{key} {number}", "shardingKey": key} for number in range(40) for key in ("a", "b", "c")]
    sink.commit(sink.task(rows, rows_per_batch=7))
    for key in ("a", "b", "c"):
        found = [message for message in orders.messages("Orders") if message.sharding_key == key]
        assert {message.queue_id for message in found} == {index_by_hash(key, 4)}
        in_order = sorted(found, key=lambda message: message.queue_offset)
        assert [message.body.decode() for message in in_order] == [f"{key} {number}" for number in range(40)]


def test_a_batch_that_was_decided_is_finished_as_it_was_whatever_comes_again(
    orders: LocalCluster, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that differ the second time (rand(), the time of day) are those of the decision."""
    reports = [sink.task([f"first {number}" for number in range(30)])]
    with monkeypatch.context() as patched:
        patched.setattr(BatchRecords, "commit", _die)
        with pytest.raises(Died):
            sink.commit(*reports)  # the driver dies when all is sent
    sink.start_again()
    again = sink.task([f"second {number}" for number in range(30)])
    assert not again.staged
    sink.commit(again)
    assert bodies(orders) == Counter(f"first {number}" for number in range(30))
    sink.start_again()
    done = sink.task(["third"])
    assert done.was_committed
    sink.commit(done)
    assert sum(bodies(orders).values()) == 30


def _die(*_: object) -> None:
    raise Died


def test_a_file_that_is_gone_is_named_and_nothing_is_taken_for_done(orders: LocalCluster, sink: Sink) -> None:
    report = sink.task(["a", "b"])
    next(Path(sink.location).rglob("*.staged")).unlink()
    with pytest.raises(RecordsError, match="must stay until its batch is committed"):
        sink.commit(report)
    assert not list(Path(sink.location).rglob("*.committed"))


def test_a_job_takes_only_its_own_files_away(orders: LocalCluster, tmp_path: Path) -> None:
    """`nightly` and `nightly.2` in one place."""
    records = BatchRecords(str(tmp_path), QUERY)
    for name in ("nightly.run.0.x.staged", "nightly.2.run.0.x.staged", "nightly.2.Orders.run.0.fence"):
        with records.written(name) as stream:
            stream.write(b"x")
    records.commit("nightly", {})
    left = sorted(path.name for path in next(tmp_path.rglob("nightly.committed")).parent.iterdir())
    assert left == ["nightly.2.Orders.run.0.fence", "nightly.2.run.0.x.staged", "nightly.committed"]


@pytest.mark.parametrize("column", ["delayLevel", "deliverTimestamp", "sendAfter"])
def test_rows_with_a_time_are_refused_before_anything_is_written(sink: Sink, column: str) -> None:
    with pytest.raises(InputError, match=f'column "{column}" does not go with'):
        refuse_times(sink.settings, InputColumns({"body": "body", column: column}))


# ── any history ──────────────────────────────────────────────────────────────────────────────────────────────────────


class MortalTopic(TopicInMemory):
    """Whoever sends dies after so many requests, before or after the broker has the last one."""

    deaths: int | None = None

    async def send_encoded(self, queue: MessageQueue, body: bytes, *, timeout: float) -> Any:
        if self.deaths is not None:
            self.deaths -= 1
            if self.deaths <= 0:
                self.deaths = None
                await super().send_encoded(queue, body, timeout=timeout)
                raise Died
        return await super().send_encoded(queue, body, timeout=timeout)


ROWS = st.lists(st.sampled_from(["same", "equal", "a", "b", "c", "d", "e"]), min_size=1, max_size=14)
LIFE = st.tuples(st.integers(1, 3), st.none() | st.integers(0, 4), st.none() | st.integers(1, 8))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, FAULTS, st.lists(LIFE, max_size=4))
def test_whatever_happens_nothing_is_seen_early_and_each_row_once(
    monkeypatch: pytest.MonkeyPatch, rows: list[str], faults: list[str], lives: list[Any]
) -> None:
    """Lives end in a task, or while the driver sends; the last one does not."""
    topic = MortalTopic(list(faults))
    with tempfile.TemporaryDirectory() as place, asyncio.Runner() as runner:
        connection = cast(SinkClient, InMemory(topic, runner.get_loop()))
        monkeypatch.setattr(writers, "connection", lambda _: connection)
        options: dict[str, Any] = {"maxBatchBytes": "150", "deliveryGuarantee": "exactly-once"}
        sink = Sink("127.0.0.1:1", place, connection=connection, **options)
        records = BatchRecords(place, QUERY)
        for partitions, task_dies, driver_dies in [*lives, (2, None, None)]:
            sink.start_again()
            was_decided = records.decision("0") is not None or records.is_committed("0")
            parts = [rows[part::partitions] for part in range(partitions)]
            if task_dies is not None and task_dies < len(parts[0]) and not was_decided:
                with pytest.raises(Died):
                    sink.task(parts[0], dies_after=task_dies, rows_per_batch=2)
                continue
            reports: list[TaskReport] = [
                sink.task(part, partition=number, rows_per_batch=2) for number, part in enumerate(parts)
            ]
            assert was_decided or not topic.bodies(), "nothing is seen before the decision"
            topic.deaths = driver_dies
            try:
                sink.commit(*reports)
            except Died:
                assert records.decision("0") is not None
            topic.deaths = None
    assert topic.bodies() == Counter(rows)
