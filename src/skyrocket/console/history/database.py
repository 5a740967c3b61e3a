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

from skyrocket.client.core.errors import ClientError
from skyrocket.errors import ConfigError

T = TypeVar("T")

_MOST_JOURNAL_BYTES: Final = 16 * 1024 * 1024  # what is more is given back once it is in the file

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


class FileTrouble(ClientError):
    """The console's file did not take or give something: the disk is full, or the file is damaged."""


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
            is_taken = isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == sqlite3.SQLITE_BUSY
            if is_taken:
                raise ConfigError(f"another console uses its file {self._path}: choose another with --data") from error
            raise ConfigError(
                f"the console cannot use its file {self._path}: {error}; choose another with --data, or move it away"
            ) from error

    def _open(self) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch(0o600)
            self._path.chmod(0o600)  # of an older one; what SQLite puts beside it has the same
        self._connection = sqlite3.connect(self._path or ":memory:", check_same_thread=False)
        # A second console would write its cluster's numbers among ours, and not hear of rules and tokens that change.
        self._connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # what is deleted is given back
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.execute(f"PRAGMA journal_size_limit={_MOST_JOURNAL_BYTES}")
        self._connection.executescript(_SCHEMA)
        if "after" not in {row[1] for row in self._connection.execute("PRAGMA table_info(audit)")}:  # an older file
            self._connection.execute("ALTER TABLE audit ADD COLUMN after TEXT NOT NULL DEFAULT ''")

    async def do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run statements as one transaction; raises FileTrouble."""
        return await self._run(self._do, work)

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with self._connection:
                return work(self._connection)
        except sqlite3.Error as error:
            raise FileTrouble(
                "the console's file {path}: {error}; make room on its disk, or stop the console and move the file away",
                path=self._path,
                error=error,
            ) from error

    async def _run(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    async def close(self) -> None:
        """Everything that was done is in the file then; may be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        await self._run(lambda: self._connection.close())
        self._thread.shutdown()
