"""Timers of one store: what is delivered when and as what."""

from pathlib import Path

import pytest

from skyrocket.broker.timer.step_delivery import GROUP_MESSAGES
from skyrocket.format.java_hash import java_hash
from skyrocket.protocol.errors import MessageIllegal
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.timer.timed import QUEUE, TOPIC, Timed, reopened

DAY = 86_400


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


@pytest.mark.parametrize("rolls", ["9" * 5000, "x", "²"])
def test_a_sender_who_says_how_often_his_timer_has_rolled_does_not_stop_the_timer(
    tmp_path: Path, clock: FakeClock, rolls: str
) -> None:
    timed = Timed(tmp_path / "store", clock, timer_roll_window=10)
    due_ms = clock.now_ms() + 15_000
    timed.put(b"far", TIMER_DELIVER_MS=str(due_ms), UNIQ_KEY="far", TIMER_ROLL_TIMES=rolls)
    timed.put_at(b"another", due_ms)
    while clock.now_ms() < due_ms:
        clock.advance(ms=500)
        timed.fire()
    assert sorted(timed.bodies()) == [b"another", b"far"]
    assert {found.properties["TIMER_ROLL_TIMES"] for found in timed.delivered()} == {"1"}
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
