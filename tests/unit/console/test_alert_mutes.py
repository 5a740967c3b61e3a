"""What is muted is not told; what was told ends; what is gone is well."""

from unittest.mock import Mock

import pytest

from skyrocket.console.alerts.measures import Measures
from skyrocket.console.alerts.mutes import Mute, muted_until_ms, with_mute
from skyrocket.console.alerts.rules import Rule
from skyrocket.console.alerts.watcher import Watcher
from skyrocket.console.cluster.view import ClusterView
from skyrocket.console.history.database import Database
from skyrocket.console.history.series import Series
from skyrocket.testing.clock import FakeClock

HOUR_MS = 3_600_000
UP = {"broker-a:0": 0.0}
LAG = Rule("any", "lag", 1, minutes=0)


@pytest.fixture
def watcher() -> Watcher:
    found = Watcher(Mock(ClusterView), Mock(Series), Mock(Database), FakeClock())
    found.rules = (LAG,)
    return found


def told(watcher: Watcher, found: Measures) -> list[tuple[str, bool]]:
    return [(news.name, news.is_firing) for news in watcher.look(found)]


def lag(**groups: float) -> Measures:
    return {"lag": groups, "broker_down": UP}


def mute(watcher: Watcher, name: str, hours: float = 1) -> None:
    watcher.mutes = (Mute("any", name, watcher._clock.now_ms() + int(hours * HOUR_MS), "ops"),)


def test_one_name_is_muted_and_the_others_are_told(watcher: Watcher) -> None:
    mute(watcher, "billing")
    assert told(watcher, lag(billing=5, mails=5)) == [("mails", True)]
    assert [(each.name, each.muted_until_ms > 0) for each in watcher.firing()] == [("billing", True), ("mails", False)]
    assert {news.name for news in watcher.news} == {"billing", "mails"}  # shown all the same


@pytest.mark.parametrize("pattern", ["*", "bill*"])
def test_a_pattern_mutes_all_that_it_fits(watcher: Watcher, pattern: str) -> None:
    mute(watcher, pattern)
    assert told(watcher, lag(billing=5)) == []


def test_what_still_fires_when_its_mute_is_over_is_told_then_and_once(watcher: Watcher) -> None:
    mute(watcher, "billing")
    assert told(watcher, lag(billing=5)) == []
    clock = watcher._clock
    assert isinstance(clock, FakeClock)
    clock.advance(seconds=3600)
    assert told(watcher, lag(billing=5)) == [("billing", True)]
    assert told(watcher, lag(billing=5)) == []


def test_what_begins_and_ends_while_it_is_muted_is_never_told(watcher: Watcher) -> None:
    mute(watcher, "billing")
    assert told(watcher, lag(billing=5)) == []
    assert told(watcher, lag(billing=0)) == []


def test_who_has_heard_of_a_beginning_hears_of_its_end_also_while_it_is_muted(watcher: Watcher) -> None:
    assert told(watcher, lag(billing=5)) == [("billing", True)]
    mute(watcher, "*")
    assert told(watcher, lag(billing=0)) == [("billing", False)]


def test_the_alert_of_a_group_that_was_deleted_ends(watcher: Watcher) -> None:
    assert told(watcher, lag(billing=5)) == [("billing", True)]
    assert told(watcher, lag()) == [("billing", False)]
    assert watcher.firing() == []


@pytest.mark.parametrize(
    "found",
    [
        {"lag": {}, "broker_down": {"broker-a:0": 0.0, "broker-b:0": 1.0}},
        {"lag": {}, "broker_down": {"broker-a:0": 1.0}},
        {"broker_down": UP},
        {"lag": {}},
    ],
    ids=["one is down", "all are down", "lag is not told", "no broker is known"],
)
def test_what_nobody_can_tell_of_is_not_gone(watcher: Watcher, found: Measures) -> None:
    assert told(watcher, lag(billing=5)) == [("billing", True)]
    assert told(watcher, found) == []
    assert [each.name for each in watcher.firing()] == ["billing"]


def test_a_new_mute_takes_the_place_of_the_old_one_and_those_that_are_over_go() -> None:
    mutes = with_mute([Mute("any", "a", 10, ""), Mute("any", "b", 50, "")], Mute("any", "b", 90, ""), 20)
    assert mutes == (Mute("any", "b", 90, ""),)
    assert with_mute(mutes, Mute("any", "b", 0, ""), 20) == ()


def test_of_several_mutes_the_last_to_end_counts() -> None:
    mutes = [Mute("any", "*", 50, ""), Mute("any", "shop-*", 90, ""), Mute("other", "*", 200, "")]
    assert [muted_until_ms(mutes, "any", name, 20) for name in ("shop-1", "bank")] == [90, 50]
    assert muted_until_ms(mutes, "any", "bank", 60) == 0
