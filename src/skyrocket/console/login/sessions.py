"""Who has logged in: a table in memory, so that a restart logs everybody out."""

import hmac
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from skyrocket.client.core.errors import ClientError
from skyrocket.client.core.settings import Acl
from skyrocket.clock import Clock
from skyrocket.console.login.tokens import Token

_IDLE_SECONDS: Final = 8 * 3600.0
_MOST_SESSIONS: Final = 1000
_TOKEN_BYTES: Final = 32


class NeedsLogin(ClientError):
    """Nobody is logged in who could be asked for it."""


@dataclass(slots=True)
class Session:
    """One browser that has logged in."""

    account: str
    credentials: Acl | None  # None: the console's own, by its token
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES))
    seen: float = 0.0
    token: Token | None = None  # it is a script's, for one request

    @property
    def may_change(self) -> bool:
        """Whether it may ask for changes; what becomes of them is the brokers' word."""
        return self.token is None or self.token.may_change


class Sessions:
    """By the value of a cookie that nobody can guess."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def begin(self, account: str, credentials: Acl | None) -> tuple[str, Session]:
        """A new session and its cookie's value; the one that was idle longest goes when there are too many."""
        cookie, session = secrets.token_urlsafe(_TOKEN_BYTES), Session(account, credentials)
        session.seen = self._clock.monotonic()
        self._sessions[cookie] = session
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return cookie, session

    def of(self, cookie: str | None) -> Session | None:
        """Whose cookie that is; None when nobody's, or idle for too long."""
        session = self._sessions.get(cookie or "")
        if session is None or cookie is None:
            return None
        now = self._clock.monotonic()
        if now - session.seen > _IDLE_SECONDS:
            del self._sessions[cookie]
            return None
        session.seen = now
        self._sessions.move_to_end(cookie)
        return session

    def knows(self, cookie: str | None) -> bool:
        """Whether nobody has logged out of it; to ask is no use of it."""
        return (cookie or "") in self._sessions

    def end(self, cookie: str | None) -> None:
        """Log out."""
        self._sessions.pop(cookie or "", None)

    def is_used(self, credentials: Acl) -> bool:
        """Whether a session has this account."""
        return any(session.credentials == credentials for session in self._sessions.values())


def same_secret(given: str, wanted: str) -> bool:
    """Compared in a time that tells nothing."""
    return hmac.compare_digest(given.encode(), wanted.encode())
