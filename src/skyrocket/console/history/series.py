"""Numbers over time: a sample a minute for a week, one an hour for a year."""

import math
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skyrocket.console.history.database import Database

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
MINUTES_KEPT_MS: Final = 7 * DAY_MS
HOURS_KEPT_MS: Final = 366 * DAY_MS
_UNKNOWN: Final = math.nan
_HOURS_AT_ONCE: Final = 6  # deleted when the file is too large


@dataclass(frozen=True, slots=True)
class Sample:
    """One number at one moment."""

    at_ms: int
    value: float


class Series:
    """Writes samples, and reads them back for a span of time."""

    def __init__(self, database: Database, max_bytes: int) -> None:
        self._database = database
        self._max_bytes = max_bytes

    async def add(self, samples: Mapping[str, float], at_ms: int) -> None:
        """One sample of each series; a second one within the minute takes the place of the first."""
        await self._database.do(lambda connection: _add(connection, samples, at_ms))

    async def between(self, name: str, from_ms: int, to_ms: int) -> list[Sample]:
        """Minutes where they are kept, hours for what is older."""

        def read(connection: sqlite3.Connection) -> list[Sample]:
            by_minute = list(_read(connection, "minutes", name, from_ms, to_ms))
            minutes_from = by_minute[0].at_ms if by_minute else to_ms
            older = _read(connection, "hours", name, from_ms, min(minutes_from - HOUR_MS, to_ms))
            return [*older, *by_minute]

        return await self._database.do(read)

    async def prune(self, now_ms: int) -> None:
        """Forget what is too old, and the oldest while the file is too large."""
        await self._database.do(lambda connection: _prune(connection, now_ms, self._max_bytes))


def _add(connection: sqlite3.Connection, samples: Mapping[str, float], at_ms: int) -> None:
    hour, minute = divmod(at_ms // MINUTE_MS, 60)
    known = dict(connection.execute("SELECT series, samples FROM minutes WHERE hour = ?", (hour,)))
    day, of_day = divmod(hour, 24)
    of_days = dict(connection.execute("SELECT series, samples FROM hours WHERE day = ?", (day,)))
    by_minute, by_hour = [], []
    for name, value in samples.items():
        values = _numbers(known.get(name), 60)
        values[minute] = value
        by_minute.append((name, hour, values.tobytes()))
        hours = _numbers(of_days.get(name), 24)
        hours[of_day] = _together(name, values)
        by_hour.append((name, day, hours.tobytes()))
    connection.executemany("INSERT OR REPLACE INTO minutes VALUES (?, ?, ?)", by_minute)
    connection.executemany("INSERT OR REPLACE INTO hours VALUES (?, ?, ?)", by_hour)


def thinned(name: str, samples: Sequence[Sample], most: int) -> list[Sample]:
    """At most so many, each for those behind it as an hour is for its minutes: no lag that was is left out."""
    every = -(-len(samples) // most) or 1
    parts = [samples[at : at + every] for at in range(0, len(samples), every)]
    return [Sample(part[0].at_ms, _together(name, (sample.value for sample in part))) for part in parts]


def _together(name: str, values: Iterable[float]) -> float:
    """What is said of a time: the worst of a lag, the mean of a rate."""
    known = [value for value in values if not math.isnan(value)]
    return max(known) if name.startswith(("lag:", "late:", "disk:", "dead:")) else sum(known) / len(known)


def _numbers(data: bytes | None, count: int) -> "array[float]":
    values = array("f")
    if data is None:
        values.extend([_UNKNOWN] * count)
    else:
        values.frombytes(data)
    return values


def _read(connection: sqlite3.Connection, table: str, name: str, from_ms: int, to_ms: int) -> Iterator[Sample]:
    column, row_ms, step_ms = ("hour", HOUR_MS, MINUTE_MS) if table == "minutes" else ("day", DAY_MS, HOUR_MS)
    rows = connection.execute(
        f"SELECT {column}, samples FROM {table} WHERE series = ? AND {column} BETWEEN ? AND ? ORDER BY {column}",
        (name, from_ms // row_ms, to_ms // row_ms),
    )
    for number, data in rows:
        for place, value in enumerate(_numbers(data, 0)):
            at_ms = number * row_ms + place * step_ms
            if from_ms <= at_ms <= to_ms and not math.isnan(value):
                yield Sample(at_ms, value)


def _prune(connection: sqlite3.Connection, now_ms: int, max_bytes: int) -> None:
    connection.execute("DELETE FROM minutes WHERE hour < ?", ((now_ms - MINUTES_KEPT_MS) // HOUR_MS,))
    connection.execute("DELETE FROM hours WHERE day < ?", ((now_ms - HOURS_KEPT_MS) // DAY_MS,))
    while _size(connection) > max_bytes:
        (oldest,) = connection.execute("SELECT min(hour) FROM minutes").fetchone()
        if oldest is not None and oldest + _HOURS_AT_ONCE < now_ms // HOUR_MS:
            connection.execute("DELETE FROM minutes WHERE hour < ?", (oldest + _HOURS_AT_ONCE,))
            continue
        (oldest,) = connection.execute("SELECT min(day) FROM hours").fetchone()
        if oldest is None or oldest >= now_ms // DAY_MS:
            break  # the bound is smaller than one day of this cluster: nothing more can go
        connection.execute("DELETE FROM hours WHERE day <= ?", (oldest,))
    connection.executescript("PRAGMA incremental_vacuum")  # to its end: `execute` gives back one page alone


def _size(connection: sqlite3.Connection) -> int:
    """Bytes in use; pages that are free will be given back."""
    (pages,), (free,), (size,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
