"""The application: endpoints, what is followed live, the pages and their files."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Scope

from skyrocket.client.core.errors import NotFound
from skyrocket.console.api.endpoint import Endpoint
from skyrocket.console.api.families import ENDPOINTS
from skyrocket.console.api.openapi import description
from skyrocket.console.api.values import BadInput
from skyrocket.console.core.parts import Parts
from skyrocket.console.live.events import streamed
from skyrocket.console.live.watch import watch
from skyrocket.console.web.answering import Answering
from skyrocket.console.web.files import Files
from skyrocket.console.web.guard import Guard
from skyrocket.console.web.json_answer import json_answer
from skyrocket.console.web.refusals import refusal
from skyrocket.errors import SkyrocketError

Handler = Callable[[Request], Awaitable[Response]]


def application(parts: Parts) -> ASGIApp:
    """For any ASGI server."""
    answering = Answering(parts)
    routes = [Route(each.path, _serve(answering, each), methods=[each.method]) for each in ENDPOINTS]
    follow = _follow(answering, parts, routes)
    files = Files()
    pages = [
        Route("/api/live", follow),
        Route("/api/openapi.json", _openapi),
        Route("/api/{path:path}", _no_such_endpoint, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        Route(files.release + "/{path:path}", files.kept),
        Route("/static/{path:path}", files.asked_again),
        Route("/{path:path}", files.document),
    ]
    settings = parts.settings
    return Guard(
        Starlette(routes=[*routes, *pages]),
        (*settings.host_names, settings.host),
        files.inline_hashes,
        is_https=settings.is_https,
    )


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
        path, _, query = request.query_params.get("of", "").partition("#")[0].partition("?")
        path = unquote(path)  # as servers do with the path of a request: names within it may have any sign
        scope: Scope = {**request.scope, "path": path, "query_string": query.encode(), "path_params": {}}
        try:
            for route in routes:
                match, found = route.matches(scope)
                if match is Match.FULL and route.path in by_path:
                    endpoint = by_path[route.path]
                    break
            else:
                raise BadInput("of= must be the path of a GET endpoint that answers with JSON to everybody: see /docs")
            asked = Request({**scope, **found}, request.receive)
            call, values = await answering.call(endpoint, asked)
            admission = parts.streams.admit(call.address)
        except SkyrocketError as error:
            return refusal(error)
        arguments = () if endpoint.wanted is None else (values,)

        async def ask() -> Any:
            call.check_session()
            return await endpoint.handler(call, *arguments)

        return streamed(watch(ask, admission))

    return follow


async def _openapi(_: Request) -> Response:
    return json_answer(description(ENDPOINTS))


async def _no_such_endpoint(request: Request) -> Response:
    return refusal(
        NotFound("there is no {method} {path}: /docs lists what there is", method=request.method, path=request.url.path)
    )
