"""Rates and lag over time in the console's file."""

import math
import sqlite3
from pathlib import Path

import pytest

from skyrocket.clock import SystemClock
from skyrocket.console.history.database import Database
from skyrocket.console.history.series import DAY_MS, HOUR_MS, MINUTE_MS, Sample, Series, thinned
from skyrocket.console.login.audit import Audit
from skyrocket.errors import ConfigError

NOON_MS = 20_000 * DAY_MS + 12 * HOUR_MS
MANY = 1 << 30


async def test_samples_are_kept_by_the_minute_and_a_gap_stays_a_gap(tmp_path: Path) -> None:
    database = Database(tmp_path / "console.db")
    await database.open()
    series = Series(database, MANY)
    for minute in (0, 1, 5):
        await series.add({"in:cluster": minute + 0.5}, NOON_MS + minute * MINUTE_MS)
    await series.add({"in:cluster": 9.0}, NOON_MS + 5 * MINUTE_MS + 100)
    await database.close()
    again = Database(tmp_path / "console.db")
    await again.open()
    found = await Series(again, MANY).between("in:cluster", NOON_MS, NOON_MS + HOUR_MS)
    await again.close()
    assert [(sample.at_ms - NOON_MS, sample.value) for sample in found] == [
        (0, 0.5),
        (MINUTE_MS, 1.5),
        (5 * MINUTE_MS, 9.0),
    ]


async def test_after_a_week_hours_are_left_the_mean_of_a_rate_and_the_worst_of_a_lag() -> None:
    database = Database(None)
    await database.open()
    series = Series(database, MANY)
    for minute in range(60):
        await series.add({"in:cluster": float(minute), "lag:group:g": float(minute)}, NOON_MS + minute * MINUTE_MS)
    later_ms = NOON_MS + 8 * DAY_MS
    await series.prune(later_ms)
    rates = await series.between("in:cluster", NOON_MS - HOUR_MS, later_ms)
    lags = await series.between("lag:group:g", NOON_MS - HOUR_MS, later_ms)
    await database.close()
    assert [(sample.at_ms, sample.value) for sample in rates] == [(NOON_MS, 29.5)]
    assert [sample.value for sample in lags] == [59.0]
    assert not math.isnan(rates[0].value)


async def test_the_file_stays_within_its_bound_and_the_oldest_go_first() -> None:
    database = Database(None)
    await database.open()
    series = Series(database, 400_000)
    for hour in range(100):
        await series.add({f"in:topic:{number}": 1.0 for number in range(40)}, NOON_MS + hour * HOUR_MS)
        await series.prune(NOON_MS + hour * HOUR_MS)
    pages, size = await database.do(
        lambda connection: [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")]
    )
    newest = await series.between("in:topic:7", NOON_MS + 99 * HOUR_MS, NOON_MS + 100 * HOUR_MS)
    by_minute = await database.do(lambda connection: connection.execute("SELECT min(hour) FROM minutes").fetchone()[0])
    await database.close()
    assert pages * size <= 600_000
    assert len(newest) == 1
    assert by_minute > NOON_MS // HOUR_MS


async def test_a_file_that_cannot_be_used_is_named_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "console.db").write_bytes(b"not a database at all, but long enough to be looked at" * 40)
    with pytest.raises(ConfigError, match=r"cannot use its file .*console.db.*--data"):
        await Database(tmp_path / "console.db").open()


async def test_the_audit_is_searched_and_paged_newest_first() -> None:
    database = Database(None)
    await database.open()
    audit = Audit(database, SystemClock())
    for number in range(5):
        await audit.write("op", "::1", "POST /x", f"/x/{number}", details="{}", before="", after="", outcome="done")
    newest = await audit.entries(most=2)
    older = await audit.entries(before_id=newest[-1].id, most=2)
    found = await audit.entries("/x/3")
    await database.close()
    assert [entry.target for entry in (*newest, *older)] == ["/x/4", "/x/3", "/x/2", "/x/1"]
    assert [entry.target for entry in found] == ["/x/3"]


async def test_the_file_of_an_earlier_release_is_used_on_with_what_it_has(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "console.db") as before:
        before.execute(
            "CREATE TABLE audit (id INTEGER PRIMARY KEY, at_ms INTEGER, account TEXT, address TEXT, action TEXT, "
            "target TEXT, details TEXT, before TEXT, outcome TEXT)"
        )
        before.execute("INSERT INTO audit VALUES (1, 5, 'op', '::1', 'POST /x', '/x', '{}', 'old', 'done')")
    before.close()
    database = Database(tmp_path / "console.db")
    await database.open()
    audit = Audit(database, SystemClock())
    await audit.write("op", "::1", "POST /x", "/y", details="{}", before="1", after="2", outcome="done")
    entries = await audit.entries()
    await database.close()
    assert [(each.target, each.before, each.after) for each in entries] == [("/y", "1", "2"), ("/x", "old", "")]


async def test_a_second_console_does_not_write_into_the_file_of_the_first(tmp_path: Path) -> None:
    first = Database(tmp_path / "console.db")
    await first.open()
    with pytest.raises(ConfigError, match=r"another console uses its file .*console.db: choose another with --data"):
        await Database(tmp_path / "console.db").open()
    await first.close()
    again = Database(tmp_path / "console.db")
    await again.open()
    await again.close()


async def test_nobody_else_reads_the_file_nor_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "console.db").touch(0o644)
    database = Database(tmp_path / "console.db")
    await database.open()
    await Series(database, MANY).add({"in:cluster": 1.0}, NOON_MS)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    await database.close()
    assert modes == {"console.db": 0o600, "console.db-wal": 0o600}


async def test_what_is_forgotten_gives_its_room_back(tmp_path: Path) -> None:
    database = Database(tmp_path / "console.db")
    await database.open()
    series = Series(database, MANY)
    for hour in range(50):
        await series.add({f"in:topic:{number}": 1.0 for number in range(200)}, NOON_MS + hour * HOUR_MS)
    before = await _pages(database)
    await series.prune(NOON_MS + 400 * DAY_MS)
    after = await _pages(database)
    await database.close()
    assert before > 500
    assert after < 50
    assert (tmp_path / "console.db").stat().st_size < 50 * 4096


async def _pages(database: Database) -> int:
    return int(await database.do(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0]))


def test_a_long_span_leaves_out_no_lag_and_has_the_mean_of_rates() -> None:
    samples = [Sample(minute * MINUTE_MS, 60.0 if minute == 7 else 0.0) for minute in range(10)]
    lags, rates = thinned("lag:group:g", samples, 4), thinned("in:cluster", samples, 4)
    assert [(sample.at_ms // MINUTE_MS, sample.value) for sample in lags] == [(0, 0.0), (3, 0.0), (6, 60.0), (9, 0.0)]
    assert [sample.value for sample in rates] == [0.0, 0.0, 20.0, 0.0]
    assert thinned("in:cluster", samples, 10) == samples
    assert thinned("in:cluster", [], 10) == []
