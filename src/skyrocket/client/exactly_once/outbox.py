"""Outbox: messages are written in the application's own transaction, so they exist if and only if its work does.

    with connection:                                                   # sqlite3: commits, or rolls back
        connection.execute("INSERT INTO orders …")
        outbox.add(connection, Message("Orders", b"…", keys="o-1001"))

`OutboxRelay` sends them afterwards and removes what brokers have confirmed.
"""

import json
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from skyrocket.client.core.client_id import UNIQUE_KEYS
from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.message import Message, delay_seconds, property_text
from skyrocket.client.core.names import check_sendable
from skyrocket.client.exactly_once.databases import Source, Statements, checked_table, statements_of, transaction
from skyrocket.client.sending.message_encoding import checked_body
from skyrocket.clock import Clock, SystemClock

_COLUMNS: Final = {  # a number that grows, and bytes
    "sqlite": ("INTEGER PRIMARY KEY AUTOINCREMENT", "BLOB"),
    "postgresql": ("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "BYTEA"),
    "mysql": ("BIGINT AUTO_INCREMENT PRIMARY KEY", "LONGBLOB"),
}
_APART: Final = ("body", "delay")  # a column of its own; made into a moment


@dataclass(frozen=True, slots=True)
class PendingMessage:
    """A row: a message that was not confirmed yet."""

    number: int
    unique_key: str
    message: Message

    @property
    def lane(self) -> str:
        """Messages of one lane are sent one after the other."""
        key = self.message.sharding_key
        return f"#{self.number}" if key is None else f"={self.message.topic}={key}"


class Outbox:
    """The table; `name` tells outboxes apart that send to the same brokers."""

    def __init__(
        self,
        name: str,
        *,
        table: str = "skyrocket_outbox",
        max_message_size: int = 4 << 20,
        clock: Clock | None = None,
    ) -> None:
        if not name.strip() or len(name) > 100:
            raise WrongUse("an outbox needs a name of 1 to 100 characters that no other outbox has")
        self.name = name
        self._table = checked_table(table)
        self._max_message_size = max_message_size
        self._clock = clock or SystemClock()

    def create_table(self, database: Source) -> None:
        """Make it if there is none; raises WrongUse for a database whose columns are not known here."""
        with transaction(database) as statements:
            if statements.dialect not in _COLUMNS:
                raise WrongUse(
                    f"the columns of {statements.dialect} are not known: make the table {self._table} yourself "
                    "with a growing id, unique_key, message (text) and body (bytes)"
                )
            number, binary = _COLUMNS[statements.dialect]
            statements.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table} (id {number}, unique_key VARCHAR(64) NOT NULL UNIQUE, "
                f"message TEXT NOT NULL, body {binary} NOT NULL)",
                {},
            )

    def add(self, handle: Any, message: Message) -> str:
        """Write a message in the transaction that a connection or session is in; returns the id it will have.

        What brokers would refuse is refused here, as the application can still do something about it.
        """
        now_ms = self._clock.now_ms()
        unique_key = UNIQUE_KEYS.next(now_ms)
        message = _with_fixed_time(message, now_ms)
        check_sendable(message.topic)
        body = checked_body(message, self._max_message_size)
        property_text(message, unique_key)
        statements = statements_of(handle)
        statements.begin()
        statements.execute(
            f"INSERT INTO {self._table} (unique_key, message, body) VALUES (:unique_key, :message, :body)",
            {"unique_key": unique_key, "message": _head_text(message), "body": body},
        )
        return unique_key

    # ── for the relay ────────────────────────────────────────────────────────────────────────────────────────────────

    def pending(self, statements: Statements, after: int, most: int) -> list[PendingMessage]:
        """Rows behind a number, oldest first."""
        rows = statements.rows(
            f"SELECT id, unique_key, message, body FROM {self._table} WHERE id > :after ORDER BY id LIMIT {most:d}",
            {"after": after},
        )
        return [PendingMessage(int(row[0]), str(row[1]), _message(row[2], bytes(row[3]))) for row in rows]

    def remove(self, statements: Statements, numbers: list[int]) -> None:
        """They were confirmed."""
        for number in numbers:
            statements.execute(f"DELETE FROM {self._table} WHERE id = :number", {"number": number})

    def count(self, database: Source) -> int:
        """How many wait."""
        with transaction(database) as statements:
            return int(statements.rows(f"SELECT COUNT(*) FROM {self._table}", {})[0][0])


def _with_fixed_time(message: Message, now_ms: int) -> Message:
    """A delay counts from now on, not from the moment at which the relay comes to it."""
    if message.delay is None:
        return message
    delay = timedelta(seconds=delay_seconds(message.delay))
    return replace(message, delay=None, deliver_at=datetime.fromtimestamp(now_ms / 1000, UTC) + delay)


def _head_text(message: Message) -> str:
    head = {each.name: getattr(message, each.name) for each in fields(message) if each.name not in _APART}
    head["keys"] = message.keys if isinstance(message.keys, str) else list(message.keys)
    head["properties"] = dict(message.properties)
    head["deliver_at"] = None if message.deliver_at is None else message.deliver_at.timestamp()
    return json.dumps(head)


def _message(text: str, body: bytes) -> Message:
    head = json.loads(text)
    if head["deliver_at"] is not None:
        head["deliver_at"] = datetime.fromtimestamp(head["deliver_at"], UTC)
    return Message(body=body, **head)
