"""Timers that somebody else wrote or delivered: RocketMQ, or a slave in our place."""

from collections import Counter
from pathlib import Path

import pytest

from skyrocket.broker.timer.rolled_copies import RolledCopies
from skyrocket.format.record import decode_records
from skyrocket.testing.clock import FakeClock
from tests.golden_store import GoldenStore
from tests.unit.broker.timer.timed import QUEUE, TIMER, TOPIC, Timed, reopened

DAY = 86_400


# ── a store that RocketMQ wrote ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "window"), [("clean", 172_800), ("timer-roll", 12)])
def test_what_waits_in_a_store_of_rocketmq_is_delivered(tmp_path: Path, name: str, window: int) -> None:
    golden = GoldenStore("5.4.0", name)
    root = golden.extract(tmp_path)
    root = root if (root / "commitlog").exists() else next(root.glob("*/commitlog")).parent
    records = [line for line in golden.messages() if line["kind"] == "message"]
    clock = FakeClock(max(line["storeTimestamp"] for line in records) + 1)
    config = golden.config_of_broker(dispatch_thread=False, timer_log_file_size=1040, timer_roll_window=window)
    timed = Timed(root, clock, config=config)
    before = {line["uniqKey"] for line in records if line["topic"] == "TopicTimer"}
    parked = [line for line in records if line["topic"] == TIMER and line["properties"]["REAL_TOPIC"] == "TopicTimer"]
    cancelled = {line["properties"].get("TIMER_DEL_UNIQKEY") for line in parked}
    expected = {line["uniqKey"] for line in parked} - before - cancelled
    assert expected
    for _ in range(4 * DAY):
        timed.fire()
        next_ms = timed.service.next_due_ms()
        if next_ms is None:
            break
        clock.advance(ms=max(next_ms - clock.now_ms(), 0))
    queues = {int(line["properties"]["REAL_QID"]) for line in parked}
    found = Counter(
        message.properties["UNIQ_KEY"]
        for queue_id in queues
        for message in timed.delivered("TopicTimer", queue_id)
        if message.store_timestamp > records[-1]["storeTimestamp"]
    )
    assert found == Counter(expected)
    assert not any(timed.counts.counts().values())
    timed.stop()


def test_a_store_of_rocketmq_that_was_killed_is_continued(tmp_path: Path) -> None:
    golden = GoldenStore("5.4.0", "killed")
    root = golden.extract(tmp_path)
    root = root if (root / "commitlog").exists() else next(root.glob("*/commitlog")).parent
    records = [line for line in golden.messages() if line["kind"] == "message"]
    clock = FakeClock(max(line["storeTimestamp"] for line in records) + 1)
    timed = Timed(root, clock, config=golden.config_of_broker(dispatch_thread=False, timer_log_file_size=1040))
    timed.fire()
    parked = {line["uniqKey"] for line in records if line["topic"] == TIMER}
    clock.advance(hours=100)
    timed.fire()
    queue = timed.store.queues.get(TIMER, 0)
    assert queue is None or queue.max_offset == timed.service._parking.next_offset
    assert parked or not timed.service.totals.parked
    timed.stop()


def test_the_queue_of_the_timer_holds_whole_messages(timed: Timed, clock: FakeClock) -> None:
    timed.put_at(b"x", clock.now_ms() + 5000)
    (parked,) = decode_records(timed.store.get(TIMER, 0, 0).join())
    assert (parked.body, parked.properties["REAL_TOPIC"], parked.properties["REAL_QID"]) == (b"x", TOPIC, str(QUEUE))


def test_numbers_of_an_older_backup_do_not_outlive_the_timers(tmp_path: Path) -> None:
    clock = FakeClock()
    timed = Timed(tmp_path / "0", clock)
    timed.put_at(b"x", clock.now_ms() + 1500)
    timed.fire()
    timed.service.save()
    clock.advance(seconds=5)
    timed.fire()
    timed.service.save()
    timed.killed(tmp_path / "1")
    (tmp_path / "1" / "config" / "timermetrics").unlink()
    timed = Timed(tmp_path / "1", clock)
    assert timed.counts.counts() == {TOPIC: 0}
    timed.stop()


# ── a slave that delivered in our place ──────────────────────────────────────────────────────────────────────────────


def test_what_a_slave_delivered_meanwhile_is_not_delivered_again(timed: Timed, clock: FakeClock) -> None:
    due_ms = clock.now_ms() + 5000
    timed.put_at(b"parked", due_ms)
    timed.fire()
    timed.put_at(b"not parked here", due_ms)
    timed.put_at(b"later", due_ms + 10_000)
    clock.advance(seconds=10)
    timed.service.delivered_elsewhere(parked_before=3, due_before_ms=clock.now_ms())
    timed.fire()
    assert (timed.bodies(), timed.counts.counts()[TOPIC]) == ([], 1)
    clock.advance(seconds=10)
    timed.fire()
    assert (timed.bodies(), timed.counts.counts()[TOPIC]) == ([b"later"], 0)
    again = reopened(timed)
    again.fire()
    assert again.bodies() == [b"later"]


def test_a_slave_that_had_parked_less_delivered_nothing_for_sure(timed: Timed, clock: FakeClock) -> None:
    due_ms = clock.now_ms() + 5000
    timed.put_at(b"one", due_ms)
    timed.put_at(b"two", due_ms)
    timed.fire()
    clock.advance(seconds=10)
    timed.service.delivered_elsewhere(parked_before=1, due_before_ms=clock.now_ms())
    timed.fire()
    assert timed.bodies() == [b"one", b"two"]


def test_how_often_a_timer_has_rolled_is_read_from_whatever_its_sender_wrote() -> None:
    copies = RolledCopies()
    first, odd, rolled = (
        b"UNIQ_KEY\x01u\x02REAL_TOPIC\x01T\x02" + rolls
        for rolls in (b"", b"TIMER_ROLL_TIMES\x01" + b"9" * 5000 + b"\x02", b"TIMER_ROLL_TIMES\x011\x02")
    )
    for copy in (odd, rolled):
        copies.note(copy)
    assert [copies.has_newer(copy) for copy in (first, odd, rolled)] == [True, True, False]
