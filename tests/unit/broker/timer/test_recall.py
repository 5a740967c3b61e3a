"""Timers that are recalled before their time, and who may do it."""

from pathlib import Path

import pytest

from skyrocket.errors import DataError
from skyrocket.format.recall_handle import RecallHandle, decode_handle
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.timer.timed import TOPIC, Timed


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
