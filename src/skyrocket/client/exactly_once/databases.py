"""One small face for the databases of applications: DB-API connections (sqlite3, psycopg, …) and SQLAlchemy.

A *source* is what an application gives to have transactions opened for it:

    a function that connects          lambda: sqlite3.connect("shop.db")      opened and closed for each transaction
    a pool's function                 pool.connection (psycopg_pool)          what it gives is entered and left
    a SQLAlchemy engine               create_engine(…)
    a SQLAlchemy session maker        sessionmaker(engine)

A *handle* is what the application works with inside: the connection or the session. Neither SQLAlchemy nor a driver
is imported here before the application has done so.
"""

import importlib
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from skyrocket.client.core.errors import WrongUse

Row: TypeAlias = Sequence[Any]
Values: TypeAlias = Mapping[str, object]

_NAMED: Final = re.compile(r":(\w+)")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_DIALECT_OF_DRIVER: Final = {
    "sqlite3": "sqlite",
    "psycopg": "postgresql",
    "psycopg2": "postgresql",
    "pg8000": "postgresql",
    "MySQLdb": "mysql",
    "pymysql": "mysql",
    "mysql": "mysql",
}


@runtime_checkable
class DbApiConnection(Protocol):
    """PEP 249, as far as it is used."""

    def cursor(self) -> Any: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class AlchemyHandle(Protocol):
    """A SQLAlchemy connection or session."""

    def execute(self, statement: Any, parameters: Any = None, /) -> Any: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...
    def in_transaction(self) -> bool: ...


@runtime_checkable
class AlchemyEngine(Protocol):
    """What gives SQLAlchemy connections."""

    dialect: Any

    def connect(self) -> Any: ...


Source: TypeAlias = AlchemyEngine | Callable[[], Any]


class Statements(Protocol):
    """SQL with `:name` for values, run on somebody's connection."""

    @property
    def handle(self) -> Any:
        """What the application works with."""

    @property
    def dialect(self) -> str:
        """sqlite, postgresql, mysql, or another name."""

    def begin(self) -> None:
        """Open a transaction that may write, where the driver does not do so by itself."""

    def is_open(self) -> bool:
        """Whether the transaction is still the one that was begun, as far as the driver tells."""

    def execute(self, sql: str, values: Values) -> int:
        """How many rows were concerned."""

    def rows(self, sql: str, values: Values) -> list[Row]:
        """What was found."""


@contextmanager
def transaction(source: Source) -> Iterator[Statements]:
    """Open, begin, commit at the end, roll back when the block raises, and give back what was opened."""
    with ExitStack() as stack:
        opened = source.connect() if isinstance(source, AlchemyEngine) else source()
        if not isinstance(opened, DbApiConnection) and not isinstance(opened, AlchemyHandle):
            if not hasattr(opened, "__enter__"):
                raise WrongUse(f"{source!r} gave {opened!r}: give a function that returns a connection or a session")
            opened = stack.enter_context(opened)  # a pool's: it takes the connection back
        else:
            stack.callback(opened.close)
        statements = statements_of(opened)
        statements.begin()
        try:
            yield statements
        except BaseException:
            opened.rollback()
            raise
        opened.commit()


def statements_of(handle: Any) -> Statements:
    """Run SQL in the transaction that a connection or session is in; raises WrongUse for anything else."""
    if isinstance(handle, DbApiConnection):
        return _DbApiStatements(handle)
    if isinstance(handle, AlchemyHandle):
        return _AlchemyStatements(handle)
    raise WrongUse(f"{handle!r} is neither a DB-API connection nor a SQLAlchemy connection or session")


def is_unique_violation(error: BaseException) -> bool:
    """Every driver has an IntegrityError of its own; PEP 249 only gives it its name."""
    return any(kind.__name__ == "IntegrityError" for kind in type(error).__mro__)


def checked_table(name: str) -> str:
    """A table's name stands in SQL as it is; raises WrongUse."""
    if not all(_IDENTIFIER.fullmatch(part) for part in name.split(".")) or name.count(".") > 1:
        raise WrongUse(f"{name!r} is not a name for a table: use letters, digits and _, as in shop.skyrocket_done")
    return name


class _DbApiStatements:
    def __init__(self, connection: DbApiConnection) -> None:
        self.handle: Any = connection
        self._driver = _driver_of(connection)
        self.dialect = _DIALECT_OF_DRIVER.get(self._driver, self._driver)
        self._style = str(getattr(sys.modules.get(self._driver), "paramstyle", "format"))
        if getattr(connection, "autocommit", False) is True:
            raise WrongUse(
                "the connection is in autocommit mode, so that work and record would be two transactions: "
                "connect with autocommit=False"
            )

    def begin(self) -> None:
        if isinstance(self.handle, sqlite3.Connection) and not self.handle.in_transaction:
            # With a plain BEGIN two threads read "not yet done", and the second one fails when it writes.
            self.handle.execute("BEGIN IMMEDIATE")

    def is_open(self) -> bool:
        if isinstance(self.handle, sqlite3.Connection):
            return self.handle.in_transaction
        status = getattr(getattr(self.handle, "info", None), "transaction_status", None)  # psycopg
        return status is None or int(status) != 0

    def execute(self, sql: str, values: Values) -> int:
        cursor = self._run(sql, values)
        try:
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def rows(self, sql: str, values: Values) -> list[Row]:
        cursor = self._run(sql, values)
        try:
            return list(cursor.fetchall())
        finally:
            cursor.close()

    def _run(self, sql: str, values: Values) -> Any:
        cursor = self.handle.cursor()
        cursor.execute(*_in_style(self._style, sql, values))
        return cursor


class _AlchemyStatements:
    def __init__(self, handle: AlchemyHandle) -> None:
        self.handle: Any = handle
        self._text = importlib.import_module("sqlalchemy").text

    @property
    def dialect(self) -> str:
        bind = self.handle.get_bind() if hasattr(self.handle, "get_bind") else self.handle
        return str(bind.dialect.name)

    def begin(self) -> None:
        if self.dialect != "sqlite":
            return  # SQLAlchemy begins with the first statement
        connection = self.handle.connection() if hasattr(self.handle, "get_bind") else self.handle
        driver = connection.connection.driver_connection
        if isinstance(driver, sqlite3.Connection) and not driver.in_transaction:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    def is_open(self) -> bool:
        return bool(self.handle.in_transaction())

    def execute(self, sql: str, values: Values) -> int:
        return int(self.handle.execute(self._text(sql), dict(values)).rowcount)

    def rows(self, sql: str, values: Values) -> list[Row]:
        return [tuple(row) for row in self.handle.execute(self._text(sql), dict(values)).fetchall()]


def _driver_of(connection: object) -> str:
    packages = [kind.__module__.partition(".")[0] for kind in type(connection).__mro__]
    known = [package for package in packages if package in _DIALECT_OF_DRIVER]
    return known[0] if known else packages[0]


def _in_style(style: str, sql: str, values: Values) -> tuple[str, Any]:
    """SQL and values as a driver wants them (PEP 249, paramstyle)."""
    if style == "named":
        return sql, values
    if style == "pyformat":
        return _NAMED.sub(r"%(\1)s", sql), values
    in_order = [values[name] for name in _NAMED.findall(sql)]
    if style == "numeric":
        numbers = iter(range(1, len(in_order) + 1))
        return _NAMED.sub(lambda _: f":{next(numbers)}", sql), in_order
    return _NAMED.sub("?" if style == "qmark" else "%s", sql), in_order
