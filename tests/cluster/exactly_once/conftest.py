"""Databases: SQLite files, and a PostgreSQL server of the machine, started for the tests."""

import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.orm import sessionmaker

from skyrocket.client.exactly_once.databases import Source, statements_of, transaction

POSTGRES_USER = "postgres"
_BINARIES = "/usr/lib/postgresql"


def _tool(name: str) -> str | None:
    found = sorted(Path(_BINARIES).glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Where its socket is; a database for all tests, so they use names of their own."""
    initdb, server = _tool("initdb"), _tool("postgres")
    if initdb is None or server is None:
        pytest.skip("no PostgreSQL on this machine (initdb, postgres)")
    user = POSTGRES_USER if os.getuid() == 0 else None  # it refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    process = None
    try:
        if user is not None:
            shutil.chown(folder, user)
        made = subprocess.run(
            [initdb, "-D", folder / "data", "-A", "trust", "-U", "test", "--no-sync", "--no-instructions"],
            user=user, capture_output=True, text=True, cwd=folder,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        options = ["-c", "fsync=off", "-c", "listen_addresses=", "-c", "shared_buffers=8MB"]
        process = subprocess.Popen(
            [server, "-D", folder / "data", "-k", folder, *options],
            user=user, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        address = f"host={folder} user=test dbname=postgres"
        deadline = time.monotonic() + 90
        while True:
            try:
                psycopg.connect(address).close()
                break
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "PostgreSQL did not start"
                time.sleep(0.05)
        yield str(folder)
    finally:
        if process is not None:
            process.terminate()
            process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Shop:
    """An application's database with one table, `effects`, in which nothing is unique."""

    source: Source
    prefix: str

    def effect(self, handle: Any, what: str) -> None:
        """In the handler's transaction."""
        statements_of(handle).execute(f"INSERT INTO {self.prefix}effects (what) VALUES (:what)", {"what": what})

    def effects(self) -> list[str]:
        with transaction(self.source) as statements:
            return [row[0] for row in statements.rows(f"SELECT what FROM {self.prefix}effects ORDER BY what", {})]


KINDS = ("sqlite3", "SQLAlchemy engine", "SQLAlchemy session", "psycopg", "SQLAlchemy session on PostgreSQL")


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    """Every kind of database that is promised."""
    kind: str = request.param
    path = tmp_path / "shop.db"
    prefix, engine = "", None
    if kind == "sqlite3":
        source: Source = lambda: sqlite3.connect(path)  # noqa: E731
    elif kind.startswith("SQLAlchemy"):
        url: Any = f"sqlite:///{path}"
        if kind.endswith("PostgreSQL"):
            folder = request.getfixturevalue("postgres")
            url = f"postgresql+psycopg://test@/postgres?host={folder}"
        engine = sqlalchemy.create_engine(url)
        source = engine if kind.endswith("engine") else sessionmaker(engine)
    else:
        folder = request.getfixturevalue("postgres")
        source = lambda: psycopg.connect(f"host={folder} user=test dbname=postgres")  # noqa: E731
    if "psycopg" in kind or "PostgreSQL" in kind:
        prefix = f"t{time.monotonic_ns()}_"
    made = Shop(source, prefix)
    with transaction(source) as statements:
        statements.execute(f"CREATE TABLE {prefix}effects (what VARCHAR(100))", {})
    yield made
    if engine is not None:
        engine.dispose()
