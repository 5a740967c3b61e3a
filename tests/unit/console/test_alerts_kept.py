"""Open alerts outlive the console: who has heard of one hears of its end, and not of its beginning again."""

from pathlib import Path
from unittest.mock import Mock

from skyrocket.console.alerts.measures import Measures, dead_letters
from skyrocket.console.alerts.news import News
from skyrocket.console.alerts.rules import DEFAULT_RULES, Kind, Rule
from skyrocket.console.alerts.watcher import Watcher
from skyrocket.console.cluster.view import ClusterView
from skyrocket.console.history.database import Database
from skyrocket.console.history.series import DAY_MS, HOUR_MS, MINUTE_MS, Series
from skyrocket.console.telling.outbox import Outbox
from skyrocket.testing.clock import FakeClock

UP = {"broker-a:0": 0.0}
LAG = Rule("any", "lag", 1, minutes=0)
NOON_MS = 20_000 * DAY_MS + 12 * HOUR_MS


async def watcher_of(path: Path, clock: FakeClock, *rules: Rule, outbox: Outbox[News] | None = None) -> Watcher:
    """As a console that starts has it."""
    database = Database(path)
    await database.open()
    watcher = Watcher(Mock(ClusterView), Mock(Series), database, clock, [] if outbox is None else [outbox])
    await watcher.load()
    if rules:
        await watcher.keep(rules)
    return watcher


async def end(watcher: Watcher) -> None:
    await watcher._database.close()


def told(watcher: Watcher, found: Measures) -> list[tuple[str, bool]]:
    return [(news.name, news.is_firing) for news in watcher.look({"broker_down": UP, **found})]


async def test_a_console_that_starts_again_tells_no_open_alert_anew_and_tells_its_end(tmp_path: Path) -> None:
    path, clock = tmp_path / "c.db", FakeClock()
    before = await watcher_of(path, clock, LAG)
    assert told(before, {"lag": {"billing": 5, "mails": 0}}) == [("billing", True)]
    await before.keep_open()
    await end(before)
    clock.advance(seconds=600)
    after = await watcher_of(path, clock)
    assert [(each.name, each.since_ms) for each in after.firing()] == [("billing", clock.now_ms() - 600_000)]
    assert told(after, {"lag": {"billing": 7, "mails": 5}}) == [("mails", True)]
    assert told(after, {"lag": {"billing": 0, "mails": 5}}) == [("billing", False)]
    await after.keep_open()
    await end(after)
    last = await watcher_of(path, clock)
    assert [each.name for each in last.firing()] == ["mails"]
    await end(last)


async def test_what_nobody_has_taken_yet_is_told_after_the_restart(tmp_path: Path) -> None:
    path, clock = tmp_path / "c.db", FakeClock()
    outbox: Outbox[News] = Outbox("ops", lambda _: None, clock)
    before = await watcher_of(path, clock, LAG, outbox=outbox)
    before.tell(before.look({"lag": {"billing": 5}, "broker_down": UP}))
    await before.keep_open()  # it is still in the outbox
    await end(before)
    after = await watcher_of(path, clock)
    assert told(after, {"lag": {"billing": 5}}) == [("billing", True)]
    await end(after)


async def test_a_broker_that_a_new_console_does_not_know_is_not_said_to_be_well(tmp_path: Path) -> None:
    path, clock = tmp_path / "c.db", FakeClock()
    down = Rule("down", "broker_down", 1, minutes=0)
    before = await watcher_of(path, clock, down)
    assert told(before, {"broker_down": {**UP, "broker-b:0": 1.0}}) == [("broker-b:0", True)]
    await before.keep_open()
    await end(before)
    after = await watcher_of(path, clock)
    assert told(after, {"broker_down": UP}) == []
    assert after.firing() == []
    await end(after)


async def test_a_queue_that_stood_still_before_the_restart_has_not_moved_by_it(tmp_path: Path) -> None:
    path, clock = tmp_path / "c.db", FakeClock()
    stuck = Rule("stuck", "stuck_seconds", 600, minutes=0)
    before = await watcher_of(path, clock, stuck)
    assert told(before, {"stuck_seconds": {"billing": 700.0}}) == [("billing", True)]
    await before.keep_open()
    await end(before)
    clock.advance(seconds=10)
    after = await watcher_of(path, clock)
    for seconds in range(0, 600, 60):  # since the console began
        assert told(after, {"stuck_seconds": {"billing": float(seconds)}}) == []
        clock.advance(seconds=60)
    assert told(after, {"stuck_seconds": {"billing": 0.0}}) == [("billing", False)]
    await end(after)


async def test_an_alert_of_a_name_that_its_rule_is_not_about_any_more_is_gone(tmp_path: Path) -> None:
    watcher = await watcher_of(tmp_path / "c.db", FakeClock(), LAG)
    assert told(watcher, {"lag": {"billing": 5, "shop-1": 5}}) == [("billing", True), ("shop-1", True)]
    await watcher.keep([Rule("any", "lag", 1, subject="shop-*", minutes=0)])
    assert [each.name for each in watcher.firing()] == ["shop-1"]
    await end(watcher)


async def test_however_many_groups_are_well_those_that_are_not_are_told(tmp_path: Path) -> None:
    watcher = await watcher_of(tmp_path / "c.db", FakeClock())
    well = {f"group-{number}": 0.0 for number in range(10_000)}
    kinds: tuple[Kind, ...] = ("lag", "late_seconds", "no_client", "skew", "stuck_seconds")
    assert watcher.rules == DEFAULT_RULES
    watcher.look({**dict.fromkeys(kinds, well), "broker_down": UP})
    watcher.rules = (LAG,)
    assert told(watcher, {"lag": {**well, "billing": 5}}) == [("billing", True)]
    assert told(watcher, {"lag": well | {"billing": 0}}) == [("billing", False)]
    await end(watcher)


# ── dead letters ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def dead(samples: dict[int, dict[str, float]], *, topics: int = 0) -> dict[str, float]:
    """Of what was recorded so many minutes ago."""
    database = Database(None)
    await database.open()
    series = Series(database, 1 << 30)
    for minute, values in sorted(samples.items(), reverse=True):
        await series.add(values, NOON_MS - minute * MINUTE_MS)
    others = [f"topic-{number}" for number in range(topics)]
    found = await dead_letters(series, ["%DLQ%billing", *others], NOON_MS)
    await database.close()
    return found


async def test_dead_letters_that_begin_their_topic_count() -> None:
    quiet = {minute: {"dead:cluster": 0.0} for minute in range(30, 2, -1)}
    assert await dead({**quiet, 1: {"dead:cluster": 5.0, "dead:group:billing": 5.0}}) == {"billing": 5.0}


async def test_dead_letters_that_were_there_when_the_console_came_do_not_count() -> None:
    there = {"dead:cluster": 5.0, "dead:group:billing": 5.0}
    assert await dead({1: there, 0: there}) == {"billing": 0.0}
    late = {minute: {"dead:cluster": 0.0} for minute in range(6, 1, -1)}  # of many topics each is looked at in turn
    assert await dead({**late, 1: there}, topics=2000) == {"billing": 0.0}


async def test_dead_letters_of_a_broker_that_was_away_for_a_while_do_not_count() -> None:
    away = {minute: {"dead:cluster": 5.0} for minute in range(90, 1, -1)}
    there = {"dead:cluster": 5.0, "dead:group:billing": 5.0}
    assert await dead({**away, 100: there, 1: there, 0: {**there, "dead:group:billing": 7.0}}) == {"billing": 2.0}
