"""When alerts begin and end."""

from hypothesis import given
from hypothesis import strategies as st

from skyrocket.console.alerts.measures import slaves_behind
from skyrocket.console.alerts.rules import DEFAULT_RULES, Phase, Rule, Watch
from skyrocket.console.cluster.runtime import BrokerState

MINUTE_MS = 60_000
LATE = Rule("late", "lag", threshold=100, minutes=5)


def phases(values: list[float], rule: Rule = LATE) -> list[Phase]:
    """The phase after each minute's value."""
    watch = Watch()
    found = []
    for minute, value in enumerate(values):
        watch.look(rule, value, minute * MINUTE_MS)
        found.append(watch.phase)
    return found


def test_an_alert_fires_when_a_value_was_too_high_for_long_enough() -> None:
    assert phases([0, 100, 100, 100, 100, 100, 100])[-2:] == [Phase.PENDING, Phase.FIRING]


def test_a_short_peak_does_not_fire() -> None:
    assert Phase.FIRING not in phases([100, 200, 300, 400, 0, 100, 100, 100, 100])


def test_an_alert_ends_when_the_value_is_well_below_for_as_long_and_not_when_it_wavers_around_the_threshold() -> None:
    fired = [100.0] * 6
    wavering = [99.0, 101.0] * 10
    assert set(phases(fired + wavering)[5:]) == {Phase.FIRING}
    assert phases([*fired, *[79.0] * 6])[-2:] == [Phase.FIRING, Phase.QUIET]


def test_without_patience_an_alert_fires_at_once() -> None:
    assert phases([1], Rule("down", "broker_down", 1, minutes=0)) == [Phase.FIRING]


@given(st.lists(st.floats(0, 200), max_size=60))
def test_whatever_the_values_an_alert_begins_only_after_five_high_minutes_and_ends_only_after_five_low_ones(
    values: list[float],
) -> None:
    before = Phase.QUIET
    for minute, phase in enumerate(phases(values)):
        if phase is Phase.FIRING and before is not Phase.FIRING:
            assert all(value >= LATE.threshold for value in values[minute - LATE.minutes : minute + 1])
        if before is Phase.FIRING and phase is Phase.QUIET:
            assert all(value <= LATE.threshold * 0.8 for value in values[minute - LATE.minutes : minute + 1])
        before = phase


def test_names_are_chosen_by_a_pattern() -> None:
    rule = Rule("shop", "lag", 1, subject="shop-*")
    assert [rule.is_about(name) for name in ("shop-1", "bank-1")] == [True, False]


def test_each_thing_that_operators_lose_sleep_over_has_a_rule_from_the_start() -> None:
    kinds = {rule.kind for rule in DEFAULT_RULES}
    assert kinds == {
        "lag",
        "late_seconds",
        "no_client",
        "dead_letters_per_hour",
        "disk",
        "broker_down",
        "name_server_down",
        "slave_behind_bytes",
        "skew",
        "stuck_seconds",
    }


def test_a_slave_is_behind_by_what_its_master_has_more_and_only_while_both_say_so() -> None:
    def broker(name: str, broker_id: int, end: int | None, *, is_up: bool = True) -> BrokerState:
        role = "slave" if broker_id else "master"
        return BrokerState("c", name, broker_id, f"{name}{broker_id}", role, is_up, "", log_max_offset=end)

    brokers = [
        broker("a", 0, 1000),
        broker("a", 1, 400),
        broker("a", 2, 1007),
        broker("b", 0, 5, is_up=False),
        broker("b", 1, 5),
        broker("c", 0, None),
        broker("c", 1, 5),
    ]
    assert slaves_behind(brokers) == {"a:1": 600.0, "a:2": 0.0}


def test_a_clock_that_is_set_back_delays_no_alert_longer_than_its_patience() -> None:
    watch = Watch()
    day_ms = 24 * 60 * MINUTE_MS
    begun = [watch.look(LATE, 100, now_ms) for now_ms in (day_ms, 0, 5 * MINUTE_MS)]
    ended = [watch.look(LATE, 0, now_ms) for now_ms in (day_ms, MINUTE_MS, 6 * MINUTE_MS)]
    assert (begun[-1], ended[-1]) == (Phase.FIRING, Phase.QUIET)
