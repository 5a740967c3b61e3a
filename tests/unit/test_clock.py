"""Time that never goes back: what waits is not held up by a wall clock that is set."""

import logging
import random

import pytest

from skyrocket.clock import SteadyClock, ahead_of_wall_ms
from skyrocket.testing.clock import FakeClock

HOUR_MS = 3_600_000


def test_it_shows_the_wall_time_as_long_as_nobody_sets_it() -> None:
    wall = FakeClock()
    steady = SteadyClock(wall)
    for _ in range(100):
        wall.advance(ms=37)
        assert steady.now_ms() == wall.now_ms()
    assert ahead_of_wall_ms(steady) == 0


def test_a_wall_clock_that_is_set_forward_is_followed_at_once() -> None:
    wall = FakeClock()
    steady = SteadyClock(wall)
    wall.set(wall.now_ms() + HOUR_MS)
    assert steady.now_ms() == wall.now_ms()


def test_after_a_wall_clock_was_set_back_a_wait_takes_at_most_a_hundredth_longer() -> None:
    wall = FakeClock()
    steady = SteadyClock(wall)
    began_ms = steady.now_ms()
    wall.set(wall.now_ms() - HOUR_MS)
    wall.advance(seconds=100)
    assert began_ms + 99_000 <= steady.now_ms() <= began_ms + 100_000


def test_the_lead_is_given_back_until_both_show_the_same_time() -> None:
    wall = FakeClock()
    steady = SteadyClock(wall)
    wall.set(wall.now_ms() - HOUR_MS)
    leads = []
    for _ in range(100):
        wall.advance(hours=1)
        leads.append(ahead_of_wall_ms(steady))
    assert leads == sorted(leads, reverse=True)
    assert leads[0] == pytest.approx(HOUR_MS * 0.99, abs=2)
    wall.advance(hours=1)
    assert ahead_of_wall_ms(steady) == 0
    wall.advance(hours=1)
    assert steady.now_ms() == wall.now_ms()


@pytest.mark.parametrize("seed", range(20))
def test_it_never_goes_back_and_is_never_behind_the_wall_clock(seed: int) -> None:
    chance = random.Random(seed)
    wall = FakeClock()
    steady = SteadyClock(wall)
    before_ms = steady.now_ms()
    for _ in range(300):
        if chance.random() < 0.2:
            wall.set(wall.now_ms() + chance.randint(-HOUR_MS, HOUR_MS))
        wall.advance(ms=chance.choice((0, 0.4, 1, 50, 10_000)))
        now_ms = steady.now_ms()
        assert now_ms >= before_ms
        assert now_ms >= wall.now_ms()
        before_ms = now_ms


def test_each_time_the_clock_is_set_back_the_log_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    wall = FakeClock()
    steady = SteadyClock(wall)
    with caplog.at_level(logging.WARNING, "skyrocket.clock"):
        for _ in range(2):
            wall.set(wall.now_ms() - 5000)
            for _ in range(10):
                wall.advance(seconds=100)
                steady.now_ms()
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "the wall clock was set back by_seconds=5.0"
    ] * 2
