"""Tokens for scripts: made by the operator, shown once, kept as hashes, gone when they are taken back."""

import hashlib
import logging
import secrets
import sqlite3
from dataclasses import dataclass, replace
from typing import Final

from skyrocket.client.core.errors import ClientError
from skyrocket.clock import Clock
from skyrocket.console.history.database import Database, FileTrouble

_logger = logging.getLogger(__name__)

_BYTES: Final = 32
_MOST_TOKENS: Final = 200
_PREFIX: Final = "sky_"  # so that people and scanners of secrets know what they have found
_NOTED_MS: Final = 60_000  # its last use is written down once a minute at most


class TokenRefused(ClientError):
    """Not this token, or not for that."""


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of one; nobody can read it any more."""

    id: str
    name: str
    may_change: bool
    made_by: str
    made_ms: int
    used_ms: int  # 0: never


class Tokens:
    """By their hash. They are long and random, so that one round of SHA-256 is enough."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._known: dict[str, Token] = {}

    async def load(self) -> None:
        """Those that were kept."""
        select = "SELECT hash, id, name, may_change, made_by, made_ms, used_ms FROM tokens"
        rows = await self._database.do(lambda connection: connection.execute(select).fetchall())
        self._known = {row[0]: Token(row[1], row[2], bool(row[3]), *row[4:]) for row in rows}

    def all(self) -> list[Token]:
        return sorted(self._known.values(), key=lambda token: (token.name, token.made_ms))

    async def make(self, name: str, made_by: str, *, may_change: bool) -> tuple[Token, str]:
        """A new one and its text, which is not kept; raises TokenRefused when there are too many."""
        if len(self._known) >= _MOST_TOKENS:
            raise TokenRefused("there are {limit} tokens already: take some back", limit=_MOST_TOKENS)
        text = _PREFIX + secrets.token_urlsafe(_BYTES)
        token = Token(secrets.token_hex(8), name, may_change, made_by, self._clock.now_ms(), 0)

        def insert(connection: sqlite3.Connection) -> None:
            row = (token.id, name, _hash(text), may_change, made_by, token.made_ms, 0)
            connection.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?)", row)

        await self._database.do(insert)
        self._known[_hash(text)] = token
        return token, text

    async def take_back(self, token_id: str) -> Token | None:
        """It opens nothing from now on; None when there is none."""
        found = next(((key, token) for key, token in self._known.items() if token.id == token_id), None)
        if found is None:
            return None

        def delete(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM tokens WHERE id = ?", (token_id,))

        del self._known[found[0]]
        await self._database.do(delete)
        return found[1]

    def knows(self, token: Token) -> bool:
        """Whether it was not taken back."""
        return any(token.id == known.id for known in self._known.values())

    async def used(self, text: str) -> Token | None:
        """Whose text that is, None if nobody's."""
        key, now_ms = _hash(text), self._clock.now_ms()
        token = self._known.get(key)
        if token is not None and now_ms - token.used_ms >= _NOTED_MS:
            token = self._known[key] = replace(token, used_ms=now_ms)

            def update(connection: sqlite3.Connection) -> None:
                connection.execute("UPDATE tokens SET used_ms = ? WHERE hash = ?", (now_ms, key))

            try:
                await self._database.do(update)
            except FileTrouble as error:  # when it was used last is no reason to refuse it
                _logger.warning("the use of token %r is not noted: %s", token.name, error)
        return token


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
