"""Steps that were over before anybody came to deliver them: in order, several at a time, bounded, each message once."""

from pathlib import Path

import pytest

from skyrocket.broker.timer.step_delivery import GROUP_MESSAGES, RETRY_SECONDS
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.results import Durability, PutResult, PutStatus
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.timer.timed import QUEUE, TOPIC, Timed

STEPS = 300


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def waiting(root: Path, clock: FakeClock, steps: int = STEPS) -> Timed:
    """One message for each of many steps, the last ones first; a stop, and hours later a start."""
    given = Timed(root, clock, timer_log_file_size=1 << 20)
    for number in reversed(range(steps)):
        given.put_at(b"%d" % number, clock.now_ms() + 1000 * (number + 2))
    given.fire()
    given.stop()
    clock.advance(hours=2)
    return Timed(root, clock, timer_log_file_size=1 << 20)


def test_many_steps_share_a_group_and_come_in_their_order(tmp_path: Path, clock: FakeClock) -> None:
    given = waiting(tmp_path, clock)
    delivered_by_turn: list[int] = []
    while given.service.fire_due(clock.now_ms()):
        delivered_by_turn.append(given.service.totals.delivered - sum(delivered_by_turn))
    assert max(delivered_by_turn) == GROUP_MESSAGES
    assert len(delivered_by_turn) < STEPS / 10
    assert given.bodies() == [b"%d" % number for number in range(STEPS)]
    assert given.counts.counts() == {TOPIC: 0}
    assert given.service.next_due_ms() is None
    given.stop()


def test_a_stop_between_two_groups_repeats_and_loses_nothing(tmp_path: Path, clock: FakeClock) -> None:
    given = waiting(tmp_path, clock)
    while given.service.totals.delivered == 0:
        assert given.service.fire_due(clock.now_ms())
    assert 0 < len(given.bodies()) < STEPS
    given.stop()
    given = Timed(tmp_path, clock, timer_log_file_size=1 << 20)
    given.fire()
    assert given.bodies() == [b"%d" % number for number in range(STEPS)]
    given.stop()


def test_a_cancel_counts_for_its_own_step_among_many(tmp_path: Path, clock: FakeClock) -> None:
    given = Timed(tmp_path, clock, timer_log_file_size=1 << 20)
    for number in range(20):
        given.put_at(b"%d" % number, clock.now_ms() + 1000 * (number + 2))
        given.put_at(b"again %d" % number, clock.now_ms() + 1000 * (number + 3), key=str(number))
    given.recall("7", clock.now_ms() + 1000 * 9)
    given.fire()
    clock.advance(hours=1)
    given.fire()
    expected = {b"%d" % number for number in range(20) if number != 7} | {b"again %d" % number for number in range(20)}
    assert sorted(given.bodies()) == sorted(expected)
    assert given.service.totals.cancelled == 1
    given.stop()


def test_a_message_that_is_not_taken_holds_up_no_other_step_and_none_comes_twice(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = waiting(tmp_path, clock, steps=10)
    put_group = given.store.intake.put_group

    def without_the_third(messages: list[PutMessage]) -> list[PutResult]:
        taken = iter(put_group([each for each in messages if each.body != b"2"]))
        busy = PutResult(PutStatus.OS_PAGE_CACHE_BUSY, -1, -1, 0, 0, Durability.NONE, -1)
        return [busy if each.body == b"2" else next(taken) for each in messages]

    monkeypatch.setattr(given.store.intake, "put_group", without_the_third)
    given.fire()
    assert given.bodies() == [b"0", b"1", b"3", b"4", b"5", b"6", b"7", b"8", b"9"]
    assert given.service.next_due_ms() is None, "it rests"
    monkeypatch.undo()
    clock.advance(seconds=RETRY_SECONDS)
    given.fire()
    assert given.bodies()[-1] == b"2"
    assert len(given.bodies()) == 10
    assert given.counts.counts() == {TOPIC: 0}
    given.stop()


def test_what_is_parked_for_a_step_that_is_being_delivered_comes_too(tmp_path: Path, clock: FakeClock) -> None:
    given = waiting(tmp_path, clock)
    while given.service.totals.delivered == 0:
        assert given.service.fire_due(clock.now_ms())
    late = PutMessage(TOPIC, QUEUE, b"late", b"")
    step_ms = given.service.read_time_ms
    late.properties = b"UNIQ_KEY\x01late\x02TIMER_OUT_MS\x01%d\x02REAL_TOPIC\x01%b\x02REAL_QID\x01%d\x02" % (
        step_ms,
        TOPIC.encode(),
        QUEUE,
    )
    late.topic, late.queue_id = "rmq_sys_wheel_timer", 0
    assert given.store.put(late).ok
    given.dispatch()
    given.fire()
    assert sorted(given.bodies()) == sorted([b"late", *(b"%d" % number for number in range(STEPS))])
    given.stop()


def test_a_step_that_was_not_over_when_the_others_were_looked_at_waits_for_its_cancels(
    tmp_path: Path, clock: FakeClock
) -> None:
    given = Timed(tmp_path, clock)
    given.put_at(b"first", clock.now_ms() + 1000)
    given.put_at(b"second", clock.now_ms() + 3000)
    given.fire()
    clock.advance(ms=1000)
    given.store.intake.after_put = lambda: None
    held = given.store.put(PutMessage(TOPIC, QUEUE, b"x"))  # not dispatched: nothing may be opened yet
    assert given.service.fire_due(clock.now_ms()) == 0
    given.dispatch = lambda: None  # type: ignore[method-assign]
    given.recall("second", clock.now_ms() + 2000)
    clock.advance(ms=2000)
    given.store.dispatcher.dispatch(held.end_offset)
    given.fire()
    given.store.dispatch()
    given.fire()
    assert given.bodies() == [b"x", b"first"]
    assert given.service.totals.cancelled == 1
    given.stop()
