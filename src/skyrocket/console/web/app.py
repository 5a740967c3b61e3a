"""The application: endpoints, what is followed live, the pages and their files."""

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Match, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from skyrocket.console.api.endpoint import Endpoint
from skyrocket.console.api.families import ENDPOINTS
from skyrocket.console.api.openapi import description
from skyrocket.console.api.values import BadInput
from skyrocket.console.core.parts import Parts
from skyrocket.console.live.events import streamed
from skyrocket.console.live.watch import watch
from skyrocket.console.web.answering import Answering
from skyrocket.console.web.guard import Guard
from skyrocket.console.web.json_answer import json_answer
from skyrocket.console.web.refusals import refusal
from skyrocket.errors import SkyrocketError

_STATIC: Final = Path(__file__).parent.parent / "static"

Handler = Callable[[Request], Awaitable[Response]]


class _Files(StaticFiles):
    """Files under an address that changes with them are kept by browsers, others are asked for again each time."""

    def __init__(self, *, kept: bool) -> None:
        super().__init__(directory=_STATIC)
        self._caching = "public, max-age=31536000, immutable" if kept else "no-cache"

    def file_response(self, *arguments: Any, **named: Any) -> Response:
        response = super().file_response(*arguments, **named)
        response.headers["Cache-Control"] = self._caching
        return response


def _digest() -> str:
    """Of all files: a new release has other addresses, and shows at once."""
    found = hashlib.sha256()
    for path in sorted(path for path in _STATIC.rglob("*") if path.is_file()):
        found.update(path.relative_to(_STATIC).as_posix().encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def application(parts: Parts) -> ASGIApp:
    """For any ASGI server."""
    answering = Answering(parts)
    routes = [Route(each.path, _serve(answering, each), methods=[each.method]) for each in ENDPOINTS]
    follow = _follow(answering, parts, routes)
    release = f"/static/{_digest()}"
    document = (_STATIC / "index.html").read_text("utf-8").replace('"/static/', f'"{release}/')
    pages = [
        Route("/api/live", follow),
        Route("/api/openapi.json", _openapi),
        Route("/api/{path:path}", _no_such_endpoint),
        Mount(release, _Files(kept=True)),
        Mount("/static", _Files(kept=False)),
        Route("/{path:path}", _page(document)),
    ]
    settings = parts.settings
    return Guard(Starlette(routes=[*routes, *pages]), (*settings.host_names, settings.host), is_https=settings.is_https)


def _serve(answering: Answering, endpoint: Endpoint) -> Handler:
    async def serve(request: Request) -> Response:
        return await answering.answer(endpoint, request)

    return serve


def _follow(answering: Answering, parts: Parts, routes: list[Route]) -> Handler:
    """GET /api/live?of=/api/…: the answer of that GET, again whenever it changes."""
    # A file or a stream cannot be followed, and what is for one account alone must not outlive its session.
    followed = [each for each in ENDPOINTS if each.method == "GET" and not each.secret and each.answer is not Response]
    by_path = {each.path: each for each in followed}

    async def follow(request: Request) -> Response:
        wanted = urlsplit(request.query_params.get("of", ""))
        scope: Scope = {**request.scope, "path": wanted.path, "query_string": wanted.query.encode(), "path_params": {}}
        try:
            parts.streams.check()
            for route in routes:
                match, found = route.matches(scope)
                if match is Match.FULL and route.path in by_path:
                    endpoint = by_path[route.path]
                    break
            else:
                raise BadInput("of= must be the path of a GET endpoint that answers with JSON to everybody: see /docs")
            asked = Request({**scope, **found}, request.receive)
            call, values = await answering.call(endpoint, asked)
        except SkyrocketError as error:
            return refusal(error)
        arguments = () if endpoint.wanted is None else (values,)
        return streamed(watch(lambda: endpoint.handler(call, *arguments), parts.streams))

    return follow


async def _openapi(_: Request) -> Response:
    return json_answer(description(ENDPOINTS))


async def _no_such_endpoint(request: Request) -> Response:
    text = f"there is no {request.method} {request.url.path}: /docs lists what there is"
    return json_answer({"error": text, "kind": "NotFound"}, 404)


def _page(document: str) -> Handler:
    """Every address of a page gives the same document; its script shows what the address names."""

    async def page(_: Request) -> Response:
        return HTMLResponse(document, headers={"Cache-Control": "no-cache"})

    return page
