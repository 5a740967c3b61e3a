"""Who asked for which change, when, from where, and what became of it."""

import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from skyrocket.clock import Clock
from skyrocket.console.history.database import Database, FileTrouble
from skyrocket.console.telling.outbox import Outbox

_logger = logging.getLogger(__name__)

_MOST_ENTRIES: Final = 20_000
_MOST_OF_STRANGERS: Final = 1000  # wrong logins: whoever guesses for weeks shall not push out what others did
_MOST_TEXT: Final = 4000
_KEEP_NEWEST: Final = "DELETE FROM audit WHERE id <= (SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET ?)"
_KEEP_NEWEST_OF_STRANGERS: Final = (
    "DELETE FROM audit WHERE account = '' AND "
    "id <= (SELECT id FROM audit WHERE account = '' ORDER BY id DESC LIMIT 1 OFFSET ?)"
)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change that was asked for."""

    id: int
    at_ms: int
    account: str
    address: str
    action: str  # POST /api/topics
    target: str  # its path with names
    details: str  # what was asked for, as JSON without secrets
    before: str  # what was there, where the page knows it
    after: str  # what is there now
    outcome: str  # done, or the reason why not


class Audit:
    """Appends entries; the oldest go when there are too many."""

    def __init__(self, database: Database, clock: Clock, outboxes: Sequence[Outbox[AuditEntry]] = ()) -> None:
        self._database = database
        self._clock = clock
        self.outboxes = tuple(outboxes)

    async def write(
        self,
        account: str,
        address: str,
        action: str,
        target: str,
        *,
        details: str,
        before: str,
        after: str,
        outcome: str,
    ) -> None:
        """One entry, which is in the file when this returns, and soon with those who are told.

        A file that does not take it undoes no change: the log has the entry then.
        """
        texts = [text[:_MOST_TEXT] for text in (details, before, after, outcome)]
        at_ms, names = self._clock.now_ms(), (account, address, action, target[:_MOST_TEXT])

        def insert(connection: sqlite3.Connection) -> int | None:
            number = connection.execute(
                "INSERT INTO audit (at_ms, account, address, action, target, details, before, after, outcome) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (at_ms, *names, *texts),
            ).lastrowid
            connection.execute(_KEEP_NEWEST, (_MOST_ENTRIES,))
            if not account:
                connection.execute(_KEEP_NEWEST_OF_STRANGERS, (_MOST_OF_STRANGERS,))
            return number

        try:
            number = await self._database.do(insert)
        except FileTrouble as error:
            number = None
            _logger.error("not in the audit: %r asked for from %s: %r. %s", account, address, (target, *texts), error)
        for outbox in self.outboxes:
            outbox.put([AuditEntry(number or 0, at_ms, *names, *texts)])

    async def entries(self, search: str = "", before_id: int | None = None, most: int = 100) -> list[AuditEntry]:
        """Newest first; those that contain a text, older than an entry."""

        def select(connection: sqlite3.Connection) -> list[AuditEntry]:
            rows = connection.execute(
                "SELECT id, at_ms, account, address, action, target, details, before, after, outcome FROM audit "
                "WHERE id < ? AND "
                "instr(lower(account || action || target || details || before || after || outcome), lower(?)) "
                "ORDER BY id DESC LIMIT ?",
                (1 << 62 if before_id is None else before_id, search, most),
            )
            return [AuditEntry(*row) for row in rows]

        return await self._database.do(select)
