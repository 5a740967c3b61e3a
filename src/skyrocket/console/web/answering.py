"""From an HTTP request to an endpoint and back: who asks, is it our own page, what was asked for, what became of it."""

import dataclasses
from typing import Any, Final

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from skyrocket.console.api.endpoint import Call, Done, Endpoint
from skyrocket.console.api.values import BadInput, read
from skyrocket.console.core.parts import Parts
from skyrocket.console.login.accounts import LoginRefused
from skyrocket.console.login.sessions import NeedsLogin, Session, same_secret
from skyrocket.console.login.tokens import TokenRefused
from skyrocket.console.telling.secrets import without_secrets
from skyrocket.console.web.json_answer import json_answer
from skyrocket.console.web.refusals import CrossSite, refusal
from skyrocket.errors import SkyrocketError

CSRF_HEADER: Final = "x-skyrocket-csrf"
_MOST_BODY_BYTES: Final = 8 * 1024 * 1024
_MOST_OF_STRANGERS: Final = 64 * 1024  # hundreds of them may come at once


class Answering:
    """Answers for one console."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        # With the prefix a browser takes the cookie over HTTPS alone, and from this host alone.
        self._cookie = "__Host-skyrocket-console" if parts.settings.is_https else "skyrocket-console"

    async def answer(self, endpoint: Endpoint, request: Request) -> Response:
        """What the endpoint says, or why not."""
        try:
            call, wanted = await self.call(endpoint, request)
        except SkyrocketError as error:
            return refusal(error)
        arguments = () if endpoint.wanted is None else (wanted,)
        try:
            value = await endpoint.handler(call, *arguments)
        except SkyrocketError as error:
            # Of strangers only wrong passwords, which are few: else they could fill the audit until the rest is gone.
            if not endpoint.is_open or isinstance(error, LoginRefused):
                await self._write_down(endpoint, request, call, wanted, None, str(error))
            return refusal(error)
        await self._write_down(endpoint, request, call, wanted, value, "done")
        if endpoint.changes and not endpoint.only_looks:
            self._parts.view.forget()
        answer = value if isinstance(value, Response) else json_answer(value)
        if call.new_cookie is not None:
            self._set_cookie(answer, call.new_cookie)
        return answer

    async def call(self, endpoint: Endpoint, request: Request) -> tuple[Call, Any]:
        """Who asks, and for what; raises NeedsLogin, CrossSite or BadInput."""
        cookie = request.cookies.get(self._cookie)
        session = await self._of_token(request)
        if session is None:
            session = self._parts.sessions.of(cookie)
            if endpoint.changes:
                _check_own_page(request, session)
        elif endpoint.changes and not endpoint.only_looks and not session.may_change:
            raise TokenRefused("this token is for reading: the operator makes others on the page Access")
        needs_login = (endpoint.changes and not endpoint.is_open) or endpoint.secret
        needs_login = needs_login or not (self._parts.settings.anonymous_may_read or endpoint.is_open)
        if needs_login and session is None:
            raise NeedsLogin("log in first: changes, and accounts, are not for everybody")
        actor = self._parts.accounts.reading
        if (endpoint.changes or endpoint.secret) and session is not None:
            actor = await self._parts.accounts.actor(session.credentials)
        wanted = None
        if endpoint.wanted is not None:
            most = _MOST_OF_STRANGERS if session is None else _MOST_BODY_BYTES
            given = await _json_of(request, most) if endpoint.changes else dict(request.query_params)
            wanted = read(endpoint.wanted, given, from_text=not endpoint.changes)
        call = Call(self._parts, request.path_params, actor, _address(request), session, cookie)
        return call, wanted

    async def _of_token(self, request: Request) -> Session | None:
        """Of a script that shows one; no page of another site can, so that it needs no other word.

        Raises NeedsLogin or TooManyAttempts.
        """
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = await self._parts.tokens.used(text.strip())
        if token is None:  # who has one does not wait for those that guess at the same address: nobody can guess it
            self._parts.attempts.check(_address(request))
            self._parts.attempts.failed(_address(request))
            raise NeedsLogin("the console does not know this token, or it was taken back: look at the page Access")
        return Session(f"token {token.name}", None, token=token)

    async def _write_down(
        self, endpoint: Endpoint, request: Request, call: Call, wanted: Any, value: Any, outcome: str
    ) -> None:
        if not endpoint.changes or endpoint.only_looks:
            return
        await self._parts.audit.write(
            call.session.account if call.session is not None else "",
            call.address,
            f"{endpoint.method} {endpoint.path}",
            request.scope["path"],
            details=_told(wanted),
            before=_told(call.before),
            after=_told(_left(call, value)),
            outcome=outcome,
        )

    def _set_cookie(self, answer: Response, value: str) -> None:
        https = self._parts.settings.is_https
        if value:
            # Without an age: the session ends here, after its last use rather than its first.
            answer.set_cookie(self._cookie, value, path="/", secure=https, httponly=True, samesite="strict")
        else:
            answer.delete_cookie(self._cookie, path="/", secure=https, httponly=True, samesite="strict")


def _check_own_page(request: Request, session: Session | None) -> None:
    """Only our pages know the session's word; no other site can set this header, nor call itself us."""
    word = request.headers.get(CSRF_HEADER, "")
    if not word or (session is not None and not same_secret(word, session.csrf)):
        raise CrossSite(
            "the header {header} is missing or of another session: GET /api/session tells its value",
            header=CSRF_HEADER,
        )
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise CrossSite("the request comes from another site")
    origin = request.headers.get("origin")
    # Not parsed: what is no address would be an error of its own.
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise CrossSite("the request comes from {origin}, which is another site", origin=origin)


async def _json_of(request: Request, most: int) -> Any:
    data = b""
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > most:
                raise BadInput("a body has at most {limit:,} bytes", limit=most)
    except ClientDisconnect:  # nobody hears it; as an error of ours it would fill the log
        raise BadInput("the body ended before it was complete") from None
    try:
        return orjson.loads(data) if data else {}
    except orjson.JSONDecodeError as error:
        raise BadInput("the body is not JSON: {error}", error=error) from None


def _address(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def _left(call: Call, value: Any) -> Any:
    """What a change that was made has left, as far as it says so."""
    if call.after is not None or not isinstance(value, Done):
        return call.after
    return value.details or value.done


def _told(value: Any) -> str:
    """As JSON, without what nobody may read later."""
    if value is None:
        return ""
    plain = dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value
    return orjson.dumps(without_secrets(plain), option=orjson.OPT_NON_STR_KEYS, default=str).decode()
