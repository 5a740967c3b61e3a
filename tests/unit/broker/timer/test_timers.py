"""Timers of one store: what is delivered when and as what, what is refused, what survives."""

import errno
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skyrocket.broker.timer.rules import TimerRules
from skyrocket.broker.timer.service import REST_SECONDS
from skyrocket.broker.timer.step_delivery import GROUP_MESSAGES, RETRY_SECONDS
from skyrocket.errors import CorruptFile, DataError
from skyrocket.format.java_hash import java_hash
from skyrocket.format.recall_handle import RecallHandle, decode_handle
from skyrocket.format.record import decode_records
from skyrocket.format.timer_wheel import WHEEL_SIZE
from skyrocket.inspector.settings import inspection_settings
from skyrocket.inspector.verify import verify
from skyrocket.offline.store_files import find_store_files
from skyrocket.protocol.errors import MessageIllegal, SystemFailure
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.results import Durability, PutResult, PutStatus
from skyrocket.testing.clock import FakeClock
from tests.golden_store import GoldenStore
from tests.unit.broker.timer.timed import QUEUE, TIMER, TOPIC, Timed, copy_of, lose_timer_tail
from tests.unit.store.stores import UnforcedDisk, clean_expired

DAY = 86_400


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def timed(tmp_path: Path, clock: FakeClock) -> Iterator[Timed]:
    given = Timed(tmp_path / "store", clock)
    yield given
    given.stop()


def reopened(given: Timed, **changes: Any) -> Timed:
    given.stop()
    return Timed(given.root, given.clock, **changes)


# ── delivery ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("C029")
@pytest.mark.requirement("D020")
@pytest.mark.parametrize(
    "properties", [{"TIMER_DELAY_SEC": "5"}, {"TIMER_DELAY_MS": "5000"}, {"TIMER_DELIVER_MS": "1760000005000"}]
)
def test_a_timer_is_delivered_when_its_time_has_come_and_not_before(
    timed: Timed, clock: FakeClock, properties: dict[str, str]
) -> None:
    timed.put(b"later", TAGS="red", UNIQ_KEY="U", **properties)
    timed.fire()
    clock.advance(ms=4999)
    timed.fire()
    assert not timed.bodies()
    clock.advance(ms=1)
    assert timed.service.next_due_ms() == clock.now_ms()
    timed.fire()
    (found,) = timed.delivered()
    assert (found.body, found.queue_offset, found.born_timestamp) == (b"later", 0, 7)
    assert found.properties == {
        "TAGS": "red",
        "UNIQ_KEY": "U",
        **properties,
        "TIMER_OUT_MS": "1760000004000",
        "REAL_TOPIC": TOPIC,
        "REAL_QID": str(QUEUE),
        "TIMER_ENQUEUE_MS": "1760000000000",
        "TIMER_DEQUEUE_MS": "1760000005000",
    }
    assert timed.store.get(TOPIC, QUEUE, 0, tags_codes={java_hash("red")}).count == 1
    assert timed.service.next_due_ms() is None


def test_timers_come_in_the_order_of_their_steps_and_of_their_arrival(timed: Timed, clock: FakeClock) -> None:
    for delay_ms in (3100, 1200, 3900, 1100, 2000):
        timed.put_at(b"%d" % delay_ms, clock.now_ms() + delay_ms)
    clock.advance(seconds=10)
    timed.fire()
    assert timed.bodies() == [b"1200", b"1100", b"2000", b"3100", b"3900"]


@pytest.mark.requirement("C030")
@pytest.mark.parametrize("due_in_ms", [2000, 2001, 2500, 2999, 3000])
def test_by_default_a_timer_is_never_early_and_less_than_a_second_late(
    timed: Timed, clock: FakeClock, due_in_ms: int
) -> None:
    due_ms = clock.now_ms() + due_in_ms
    timed.put_at(b"x", due_ms)
    while not timed.bodies():
        clock.advance(ms=1)
        timed.fire()
    assert 0 <= clock.now_ms() - due_ms < 1000


def test_the_precision_may_be_finer(tmp_path: Path, clock: FakeClock) -> None:
    timed = Timed(tmp_path / "store", clock, timer_precision_ms=100)
    timed.put_at(b"x", clock.now_ms() + 250)
    for passed_ms, expected in ((249, 0), (1, 0), (49, 0), (1, 1)):
        clock.advance(ms=passed_ms)
        timed.fire()
        assert len(timed.bodies()) == expected
    timed.stop()


@pytest.mark.requirement("C031")
def test_a_time_in_the_past_is_no_timer(timed: Timed, clock: FakeClock) -> None:
    timed.put_at(b"at once", clock.now_ms())
    (found,) = timed.delivered()
    assert "TIMER_OUT_MS" not in found.properties


@pytest.mark.requirement("D013")
def test_a_time_beyond_the_window_rolls_and_is_still_met(tmp_path: Path, clock: FakeClock) -> None:
    timed = Timed(tmp_path / "store", clock, timer_roll_window=10)
    timed.put_at(b"far", clock.now_ms() + 35_500)
    while not timed.bodies():
        clock.advance(ms=500)
        timed.fire()
    assert clock.now_ms() == FakeClock().now_ms() + 36_000
    assert timed.delivered()[0].properties["TIMER_ROLL_TIMES"] == "3"
    assert (timed.service.totals.rolled, timed.service.totals.delivered) == (3, 1)
    timed.stop()


def test_forty_days_are_met_when_they_are_allowed(tmp_path: Path, clock: FakeClock) -> None:
    timed = Timed(tmp_path / "store", clock, timer_max_delay_seconds=40 * DAY)
    due_ms = clock.now_ms() + 40 * DAY * 1000
    timed.put_at(b"far", due_ms)
    with pytest.raises(MessageIllegal, match="bigger than the max delay 3456000000ms"):
        timed.put_at(b"too far", due_ms + 1)
    steps = 0
    while not timed.bodies():
        timed.fire()
        timed.service.save()
        next_ms = timed.service.next_due_ms()
        if next_ms is not None and next_ms > clock.now_ms():
            clock.advance(ms=next_ms - clock.now_ms())
        steps += 1
    assert clock.now_ms() == due_ms
    assert steps < 100
    timed.stop()


def test_a_crowded_step_is_delivered_in_groups_and_a_restart_in_its_middle_repeats_nothing(
    timed: Timed, clock: FakeClock
) -> None:
    count = 3 * GROUP_MESSAGES + 7
    for number in range(count):
        timed.put_at(b"%d" % number, clock.now_ms() + 2000)
    clock.advance(seconds=2)
    while len(timed.bodies()) < 2 * GROUP_MESSAGES:
        assert timed.service.fire_due(clock.now_ms())
    assert len(timed.bodies()) == 2 * GROUP_MESSAGES
    again = reopened(timed)
    again.fire()
    assert again.bodies() == [b"%d" % number for number in range(count)]
    assert not any(again.counts.counts().values())
    again.stop()


def test_what_comes_for_a_step_that_is_being_delivered_is_delivered_with_it(timed: Timed, clock: FakeClock) -> None:
    for number in range(GROUP_MESSAGES + 1):
        timed.put_at(b"%d" % number, clock.now_ms() + 1000)
    clock.advance(seconds=1)
    while not timed.bodies():
        timed.service.fire_due(clock.now_ms())
    clock.set(clock.now_ms() - 1000)  # an operator's clock, set back: the next one is for the same step
    timed.put_at(b"late", clock.now_ms() + 1000)
    clock.advance(seconds=1)
    timed.fire()
    assert timed.bodies()[-1] == b"late"
    assert len(timed.bodies()) == GROUP_MESSAGES + 2


def test_a_clock_that_is_set_back_makes_nothing_early(timed: Timed, clock: FakeClock) -> None:
    clock.advance(seconds=100)
    timed.put_at(b"first", clock.now_ms() + 1)
    clock.advance(seconds=1)
    timed.fire()
    clock.set(clock.now_ms() - 50_000)
    timed.put_at(b"second", clock.now_ms() + 3000)
    clock.advance(ms=2999)
    timed.fire()
    assert timed.bodies() == [b"first"]
    clock.advance(ms=1001)
    timed.fire()
    assert timed.bodies() == [b"first", b"second"]


def test_a_broker_that_was_down_for_weeks_delivers_what_came_due(timed: Timed, clock: FakeClock) -> None:
    for number in range(5):
        timed.put_at(b"%d" % number, clock.now_ms() + 3000 + 1000 * number)
    timed.fire()
    clock.advance(hours=24 * 14)  # a whole round of the wheel: new messages need the same slots
    again = reopened(timed)
    again.put_at(b"new", clock.now_ms() + 5000)
    again.fire()
    assert again.bodies() == [b"0", b"1", b"2", b"3", b"4"]
    clock.advance(seconds=5)
    again.fire()
    assert again.bodies()[-1] == b"new"
    again.stop()


# ── recall ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("named", ["a", f"{TOPIC}+a"])
def test_a_timer_is_not_cancelled_by_who_sends_to_another_topic(timed: Timed, clock: FakeClock, named: str) -> None:
    due_ms = clock.now_ms() + 5000
    timed.put_at(b"a", due_ms)
    timed.put(b"0", topic="Elsewhere", TIMER_DELIVER_MS=str(due_ms), TIMER_DEL_UNIQKEY=named, UNIQ_KEY="a")
    timed.fire()
    clock.advance(seconds=6)
    timed.fire()
    assert timed.bodies() == [b"a"]
    assert timed.service.totals.cancelled == 0


def test_a_recalled_timer_is_not_delivered(timed: Timed, clock: FakeClock) -> None:
    due_ms = clock.now_ms() + 5000
    for name in ("a", "b", "c"):
        timed.put_at(name.encode(), due_ms)
    timed.fire()
    assert timed.counts.counts() == {TOPIC: 3}
    timed.recall("b", due_ms)
    timed.fire()
    assert timed.counts.counts() == {TOPIC: 2}
    clock.advance(seconds=6)
    timed.fire()
    assert timed.bodies() == [b"a", b"c"]
    assert timed.service.totals.cancelled == 1
    assert timed.counts.counts() == {TOPIC: 0}


def test_a_recall_in_the_form_of_older_brokers_is_understood(timed: Timed, clock: FakeClock) -> None:
    due_ms = clock.now_ms() + 5000
    timed.put_at(b"x", due_ms)
    timed.put(b"0", TIMER_DELIVER_MS=str(due_ms), TIMER_DEL_UNIQKEY=f"{TOPIC}+x", UNIQ_KEY="x")
    timed.put_at(b"y", due_ms)
    timed.put(b"0", TIMER_DELIVER_MS=str(due_ms), TIMER_DEL_UNIQKEY="Other+y", UNIQ_KEY="y")
    clock.advance(seconds=6)
    timed.fire()
    assert timed.bodies() == [b"y"]


def test_a_recall_that_is_parked_late_is_in_time(timed: Timed, clock: FakeClock) -> None:
    due_ms = clock.now_ms() + 1500
    timed.put_at(b"x", due_ms)
    timed.fire()
    for number in range(2000):  # more than one group of parking
        timed.put_at(b"%d" % number, due_ms + 60_000)
    timed.recall("x", due_ms)
    clock.advance(seconds=30)
    timed.fire()
    assert not timed.bodies()


def test_a_recall_of_a_far_timer_rolls_with_it(tmp_path: Path, clock: FakeClock) -> None:
    timed = Timed(tmp_path / "store", clock, timer_roll_window=10)
    due_ms = clock.now_ms() + 45_000
    timed.put_at(b"x", due_ms)
    clock.advance(seconds=7)
    timed.recall("x", due_ms)
    timed.put_at(b"y", due_ms)
    for _ in range(60):
        clock.advance(seconds=1)
        timed.fire()
    assert timed.bodies() == [b"y"]
    assert timed.counts.counts() == {TOPIC: 0}
    timed.stop()


def test_a_cancel_without_its_message_leaves_the_counts_right(timed: Timed, clock: FakeClock) -> None:
    timed.put_at(b"far", clock.now_ms() + 50_000)
    timed.recall("nobody", clock.now_ms() + 5000)
    timed.fire()
    clock.advance(seconds=10)
    timed.fire()
    assert timed.counts.counts() == {TOPIC: 1}


def test_a_handle_says_which_message_is_meant() -> None:
    handle = RecallHandle("TopicTimer", "broker-a", "1794794327001", "0A000005553C4E0E2F2A4DAC1B890001")
    text = "djEgVG9waWNUaW1lciBicm9rZXItYSAxNzk0Nzk0MzI3MDAxIDBBMDAwMDA1NTUzQzRFMEUyRjJBNERBQzFCODkwMDAx"  # of RocketMQ
    assert handle.encode() == text
    assert decode_handle(text) == handle
    padded = RecallHandle("T", "b", "1", "k").encode()
    assert decode_handle(padded.rstrip("=")) == decode_handle(padded)


@pytest.mark.parametrize("text", ["", "!", "djEgYSBi", "djIgYSBiIGMgZA==", "/////w==", "é"])
def test_a_text_that_is_no_handle_is_refused(text: str) -> None:
    with pytest.raises(DataError):
        decode_handle(text)


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────────

ILLEGAL = (
    "timer message illegal, the delay time should not be bigger than the max delay 259200000ms; or if set del msg, "
    "the delay time should be bigger than the current time"
)


@pytest.mark.parametrize(
    "properties",
    [
        {"TIMER_DELAY_SEC": "259201"},
        {"TIMER_DELAY_MS": "259200001"},
        {"TIMER_DELIVER_MS": "1760259200001"},
        {"TIMER_DELAY_MS": "soon"},
        {"TIMER_DELIVER_MS": "9" * 30},
        {"TIMER_DELIVER_MS": "1760000000000", "TIMER_DEL_UNIQKEY": "k"},
    ],
)
def test_what_is_too_far_or_no_time_is_refused(timed: Timed, properties: dict[str, str]) -> None:
    with pytest.raises(MessageIllegal) as refused:
        timed.put(b"x", **properties)
    assert refused.value.remark == ILLEGAL
    assert timed.store.commit_log.written_offset == 0


def test_the_longest_delay_is_taken(timed: Timed) -> None:
    assert timed.put(b"x", TIMER_DELAY_SEC="259200").ok


def test_without_a_timer_all_are_refused(clock: FakeClock, tmp_path: Path) -> None:
    timed = Timed(tmp_path / "store", clock, timer_wheel=False)
    with pytest.raises(SystemFailure, match="accurate timer message is not enabled, timerWheelEnable is false"):
        timed.put(b"x", TIMER_DELAY_SEC="1")
    timed.stop()


def test_a_crowded_step_refuses_more_the_fuller_it_is(
    timed: Timed, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    remarks: set[str | None] = set()

    def refused_of_300(waiting: int) -> int:
        monkeypatch.setattr(timed.service, "waiting_at", lambda time_ms: waiting)
        rules = TimerRules(timed.config, clock, timed.service)
        refused = 0
        for _ in range(300):
            try:
                rules.park(PutMessage(TOPIC, 0, b"x", b"TIMER_DELAY_SEC\x015\x02"))
            except SystemFailure as error:
                remarks.add(error.remark)
                refused += 1
        return refused

    timed.config = type(timed.config)(timer_slot_limit=100)
    assert refused_of_300(100) == 0
    assert 0 < refused_of_300(110) < refused_of_300(190) < 300
    assert refused_of_300(200) == refused_of_300(5000) == 300
    assert remarks == {
        "timer message is under flow control, max num limit is 200 or the current value is greater than 100 and less "
        "than 200, trigger random flow control"
    }


def test_the_crowd_of_a_step_is_counted(timed: Timed, clock: FakeClock) -> None:
    for _ in range(3):
        timed.put_at(b"x", clock.now_ms() + 5500)
    timed.fire()
    assert [timed.service.waiting_at(clock.now_ms() + ms) for ms in (4999, 5000, 5999, 6000)] == [0, 3, 3, 0]


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_message_that_is_not_taken_is_tried_again_and_the_others_come_once(
    timed: Timed, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        timed.put_at(b"%d" % number, clock.now_ms() + 1000)
    clock.advance(seconds=1)
    put_group = timed.store.intake.put_group

    def without_the_third(messages: list[PutMessage]) -> list[PutResult]:
        taken = iter(put_group([each for each in messages if each.body != b"2"]))
        busy = PutResult(PutStatus.OS_PAGE_CACHE_BUSY, -1, -1, 0, 0, Durability.NONE, -1)
        return [busy if each.body == b"2" else next(taken) for each in messages]

    monkeypatch.setattr(timed.store.intake, "put_group", without_the_third)
    timed.fire()
    assert timed.bodies() == [b"0", b"1", b"3", b"4"]
    assert timed.service.next_due_ms() is None, "it rests"
    monkeypatch.undo()
    clock.advance(seconds=RETRY_SECONDS)
    timed.fire()
    assert timed.bodies() == [b"0", b"1", b"3", b"4", b"2"]
    assert timed.counts.counts() == {TOPIC: 0}


def test_a_full_disk_stops_parking_and_nothing_is_lost(
    timed: Timed, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed.put_at(b"x", clock.now_ms() + 1000)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(timed.files.log, "append", full)
    assert timed.fire() == 0
    assert timed.service.unparked == 1
    monkeypatch.undo()
    clock.advance(seconds=REST_SECONDS)
    timed.fire()
    assert timed.bodies() == [b"x"]


def test_a_message_of_the_timer_that_says_no_time_stops_nobody(timed: Timed, clock: FakeClock) -> None:
    timed.store.put(PutMessage(TIMER, 0, b"alien", b"KEYS\x01k\x02"))
    timed.put_at(b"x", clock.now_ms() + 1000)
    clock.advance(seconds=2)
    timed.fire()
    assert timed.bodies() == [b"x"]
    assert timed.service.totals.dropped == 1


def test_properties_that_have_no_room_for_more_are_delivered_as_they_are(timed: Timed, clock: FakeClock) -> None:
    padding = "x" * (32_767 - 130)
    assert timed.put(b"x", TIMER_DELAY_MS="1000", PADDING=padding).ok
    clock.advance(seconds=2)
    timed.fire()
    (found,) = timed.delivered()
    assert "TIMER_DEQUEUE_MS" not in found.properties
    assert found.properties["PADDING"] == padding


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_after_a_clean_stop_the_files_agree_with_each_other(timed: Timed, clock: FakeClock) -> None:
    for number in range(70):
        timed.put_at(b"%d" % number, clock.now_ms() + 500 * number)
    timed.recall("60", clock.now_ms() + 30_000)
    clock.advance(seconds=10)
    timed.fire()
    timed.stop()
    findings = verify(find_store_files(timed.root), inspection_settings(None, ["mappedFileSizeTimerLog=1040"])).findings
    assert [str(each) for each in findings if "timer" in each.file] == []
    assert (timed.root / "timerwheel").stat().st_size == WHEEL_SIZE
    again = Timed(timed.root, clock)
    assert len(again.service.pending()) == 70 - len(timed_out(clock, 70)) + 1
    again.stop()


def timed_out(clock: FakeClock, count: int) -> list[int]:
    began_ms = FakeClock().now_ms()
    return [n for n in range(count) if (began_ms + 500 * n - 1) // 1000 * 1000 + 1000 <= clock.now_ms()]


def test_what_was_parked_and_what_was_not_survives_a_kill_and_a_power_cut(
    tmp_path: Path, timed: Timed, clock: FakeClock
) -> None:
    for number in range(40):
        timed.put_at(b"%d" % number, clock.now_ms() + 5000)
        if number == 15:
            timed.fire()
            timed.service.save()
        if number == 30:
            timed.fire()
    for name in ("kill", "power"):
        copy_of(timed, tmp_path / name)
        if name == "power":
            lose_timer_tail(tmp_path / name)
        again = Timed(tmp_path / name, clock)
        again.fire()
        assert again.counts.counts() == {TOPIC: 40}
        assert len(again.service.pending()) == 40
        again.stop()
    clock.advance(seconds=6)
    again = Timed(tmp_path / "power", clock)
    again.fire()
    assert Counter(again.bodies()) == Counter(b"%d" % number for number in range(40))
    again.stop()


def test_a_missing_timer_log_is_built_again_from_the_queue(timed: Timed, clock: FakeClock) -> None:
    for number in range(50):
        timed.put_at(b"%d" % number, clock.now_ms() + 2000 + 100 * number)
    clock.advance(seconds=4)
    timed.fire()
    before = timed.bodies()
    assert 0 < len(before) < 50
    timed.stop()
    for file in (timed.root / "timerlog").iterdir():
        file.unlink()
    (timed.root / "timerwheel").unlink()
    clock.advance(seconds=10)
    again = Timed(timed.root, clock)
    again.fire()
    assert set(again.bodies()) == {b"%d" % number for number in range(50)}
    again.stop()


def test_a_wheel_of_another_precision_is_refused_with_the_next_step(
    timed: Timed, clock: FakeClock, tmp_path: Path
) -> None:
    timed.put_at(b"x", clock.now_ms() + 5000)
    timed.fire()
    timed.service.save()
    copy_of(timed, tmp_path / "other")
    with pytest.raises(CorruptFile, match=r"is timerPrecisionMs another than it was\?\. Set it back"):
        Timed(tmp_path / "other", clock, timer_precision_ms=500)


def test_a_wheel_that_was_built_again_lacks_only_what_was_delivered(timed: Timed, clock: FakeClock) -> None:
    timed.put_at(b"x", clock.now_ms() + 1000)
    clock.advance(seconds=2)
    timed.fire()
    timed.stop()
    (timed.root / "timerwheel").unlink()
    again = reopened(Timed(timed.root, clock))
    again.put_at(b"y", clock.now_ms() + 1000)
    again.fire()
    again = reopened(again)
    clock.advance(seconds=2)
    again.fire()
    assert again.bodies() == [b"x", b"y"]
    again.stop()


def test_a_wheel_of_the_wrong_size_is_refused(timed: Timed, clock: FakeClock, tmp_path: Path) -> None:
    copy_of(timed, tmp_path / "other")
    (tmp_path / "other" / "timerwheel").write_bytes(b"x" * 100)
    with pytest.raises(CorruptFile, match="is 100 bytes long, a timer wheel has"):
        Timed(tmp_path / "other", clock)


def test_an_idle_timer_writes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    timed = Timed(tmp_path / "store", clock, disk=UnforcedDisk())
    timed.put_at(b"x", clock.now_ms() + 100_000)
    timed.fire()
    timed.service.save()
    clock.advance(seconds=5)
    timed.fire()
    assert not timed.service._has_changed()
    timed.stop()


# ── retention ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_message_is_never_deleted_before_its_delivery(tmp_path: Path, clock: FakeClock) -> None:
    timed = Timed(tmp_path / "store", clock, commit_log_file_size=8192, file_reserved_hours=1, delete_batch=100)
    timed.put_at(b"x", clock.now_ms() + 40 * 3_600_000)
    timed.fire()
    for _ in range(60):
        timed.put(b"y" * 1000)
    timed.store.flush()
    timed.service.save()
    log = timed.store.commit_log
    assert log.files.starts[-1] > 0
    clock.advance(hours=30)
    for start in log.files.starts:
        os.utime(log.files.path_of(start), (0, 0))
    timed.service.pin()
    assert clean_expired(timed.store).log_files == 0
    assert timed.service.clean() == 0
    clock.advance(hours=11)
    timed.fire()
    assert timed.bodies()[-1] == b"x"
    timed.store.flush()
    timed.service.pin()
    assert clean_expired(timed.store).log_files > 0
    timed.stop()


def test_files_of_the_timer_log_go_with_the_messages_that_they_point_to(tmp_path: Path, clock: FakeClock) -> None:
    timed = Timed(tmp_path / "store", clock, commit_log_file_size=8192, file_reserved_hours=1, delete_batch=100)
    for number in range(100):
        timed.put_at(b"%d" % number, clock.now_ms() + 1000)
    clock.advance(seconds=2)
    timed.fire()
    timed.put_at(b"last", clock.now_ms() + 50_000_000)
    timed.fire()
    timed.store.flush()
    assert timed.service.clean() == 0, "the messages are still there"
    clock.advance(hours=2)
    log = timed.store.commit_log
    for start in log.files.starts:
        os.utime(log.files.path_of(start), (0, 0))
    timed.service.pin()
    assert clean_expired(timed.store).log_files > 0
    assert timed.service.clean() > 0
    again = reopened(timed, commit_log_file_size=8192)
    clock.advance(hours=20)
    again.fire()
    assert again.bodies()[-1] == b"last"
    again.stop()


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
