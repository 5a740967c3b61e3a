"""The console's file: SQLite on a thread of its own, so that nobody waits for the disk.

    minutes(series, hour, samples)     60 numbers of four bytes: a week of minutes
    hours(series, day, samples)        24 numbers: a year of hours
    audit(…)                           the changes that were asked for
    tokens(…)                          for scripts: their hashes, never they themselves

A number that is not known is NaN. When the file grows over its bound, the oldest minutes go first, then the oldest
hours.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from skyrocket.errors import ConfigError

T = TypeVar("T")

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS minutes (series TEXT, hour INTEGER, samples BLOB, PRIMARY KEY (series, hour)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS hours (series TEXT, day INTEGER, samples BLOB, PRIMARY KEY (series, day)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS minutes_by_hour ON minutes (hour);
CREATE INDEX IF NOT EXISTS hours_by_day ON hours (day);
CREATE TABLE IF NOT EXISTS audit (
    id INTEGER PRIMARY KEY, at_ms INTEGER, account TEXT, address TEXT, action TEXT, target TEXT,
    details TEXT, before TEXT, outcome TEXT, after TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, name TEXT, hash TEXT, may_change INTEGER, made_by TEXT, made_ms INTEGER, used_ms INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
"""


class Database:
    """Opened at the start, closed at the end; every statement runs on its one thread."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "skyrocket-console-database")
        self._connection: sqlite3.Connection
        self._is_closed = False

    async def open(self) -> None:
        """Raises ConfigError when the file cannot be used."""
        try:
            await self._run(self._open)
        except (OSError, sqlite3.Error) as error:
            self._thread.shutdown()
            raise ConfigError(
                f"the console cannot use its file {self._path}: {error}; choose another with --data, or move it away"
            ) from error

    def _open(self) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(self._path or ":memory:", check_same_thread=False)
        self._connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # what is deleted is given back
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.executescript(_SCHEMA)
        if "after" not in {row[1] for row in self._connection.execute("PRAGMA table_info(audit)")}:  # an older file
            self._connection.execute("ALTER TABLE audit ADD COLUMN after TEXT NOT NULL DEFAULT ''")
        if self._path is not None:
            self._path.chmod(0o600)

    async def do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run statements as one transaction."""
        return await self._run(self._do, work)

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._connection:
            return work(self._connection)

    async def _run(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    async def close(self) -> None:
        """Everything that was done is in the file then; may be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        await self._run(lambda: self._connection.close())
        self._thread.shutdown()
