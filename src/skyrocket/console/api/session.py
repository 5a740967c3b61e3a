"""Who is logged in, logging in and out."""

from dataclasses import dataclass

from skyrocket import __version__
from skyrocket.client.core.settings import Acl
from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.values import BadInput
from skyrocket.console.login.accounts import LoginRefused
from skyrocket.console.login.sessions import same_secret
from skyrocket.model.words import said

family = Family("Session")

_FOR_THE_LOGIN = "login"  # a header of any value keeps other sites out where there is no session yet


@dataclass(frozen=True, slots=True)
class SessionAnswer:
    """Who asks; `csrf` goes into the header X-Skyrocket-Csrf of every change."""

    account: str | None
    may_change: bool
    anonymous_may_read: bool
    csrf: str
    name_servers: list[str]
    version: str


@dataclass(frozen=True, slots=True)
class Login:
    """The token that the console printed, or name and password (accessKey and secretKey) of an account of brokers."""

    token: str = ""
    account: str = ""
    password: str = ""


@family.get("/api/session", is_open=True)
async def session(call: Call) -> SessionAnswer:
    """Who is logged in, and at which cluster."""
    known, anonymous_may_read = call.session, call.parts.settings.anonymous_may_read
    may_look = anonymous_may_read or known is not None
    return SessionAnswer(
        None if known is None else known.account,
        known is not None and known.may_change,
        anonymous_may_read,
        _FOR_THE_LOGIN if known is None else known.csrf,
        call.parts.accounts.reading.admin.name_servers() if may_look else [],
        __version__,
    )


@family.post("/api/login", is_open=True)
async def login(call: Call, wanted: Login) -> Done:
    """Begin a session; the cookie is the answer's."""
    if not wanted.token and not wanted.account:
        raise BadInput("give the console's token, or account and password")
    with call.parts.attempts.one(call.address, LoginRefused):
        account, credentials = await _known(call, wanted)
    call.parts.sessions.end(call.cookie)
    call.new_cookie, call.session = call.parts.sessions.begin(account, credentials)
    return Done(said("logged in as {account}", account=account))


async def _known(call: Call, wanted: Login) -> tuple[str, Acl | None]:
    """Who that is, None: the console's own account; raises LoginRefused."""
    if not wanted.token:
        return wanted.account, await call.parts.accounts.check(wanted.account, wanted.password)
    if not same_secret(wanted.token, call.parts.token):
        raise LoginRefused("that is not the token which the console printed when it started")
    return "operator", None


@family.post("/api/logout")
async def logout(call: Call) -> Done:
    """End the session."""
    call.parts.sessions.end(call.cookie)
    call.new_cookie = ""
    credentials = None if call.session is None else call.session.credentials
    if credentials is not None and not call.parts.sessions.is_used(credentials):
        await call.parts.accounts.drop(credentials)
    return Done(said("logged out"))
