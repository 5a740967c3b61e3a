"""Timers that are refused, and what becomes of the others when something fails."""

import errno
import os
from pathlib import Path

import pytest

from skyrocket.broker.timer.rules import TimerRules
from skyrocket.broker.timer.service import REST_SECONDS
from skyrocket.broker.timer.step_delivery import RETRY_SECONDS
from skyrocket.protocol.errors import MessageIllegal, SystemFailure
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.results import Durability, PutResult, PutStatus
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.timer.timed import TIMER, TOPIC, Timed

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
