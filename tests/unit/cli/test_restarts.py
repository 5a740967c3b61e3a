"""The pauses before a dead broker is started again."""

from hypothesis import given
from hypothesis import strategies as st

from skyrocket.cli.fleet.restarts import LONGEST_PAUSE_SECONDS, PER_MINUTE, STABLE_SECONDS, Restarts


def test_pauses_grow_with_each_death() -> None:
    restarts, now, pauses = Restarts(), 100.0, []
    for _ in range(4):
        pauses.append(restarts.pause_after(now, 1.0).seconds)
        now += pauses[-1] + 1.0
    assert pauses == [0.5, 1.0, 2.0, 4.0]


def test_who_lived_long_is_started_soon_again() -> None:
    restarts = Restarts()
    for now in (0.0, 5.0, 10.0):
        restarts.pause_after(now, 1.0)
    assert restarts.pause_after(10.0 + STABLE_SECONDS, STABLE_SECONDS) == (0.5, False)


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=60))
def test_there_are_never_more_starts_within_a_minute_than_allowed(lives: list[float]) -> None:
    restarts, now = Restarts(), 0.0
    starts: list[float] = []
    for lived in lives:
        now += lived
        pause = restarts.pause_after(now, lived)
        assert pause.is_bound_reached or pause.seconds <= LONGEST_PAUSE_SECONDS
        now += pause.seconds
        starts.append(now)
    for first, later in zip(starts, starts[PER_MINUTE:], strict=False):
        assert later - first >= 60.0 - 1e-6
