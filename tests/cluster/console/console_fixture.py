"""A console in front of a local cluster, asked over HTTP as a browser would."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import httpx

from skyrocket.client.core.settings import Acl
from skyrocket.console.core.settings import ConsoleSettings
from skyrocket.console.server import Console
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.waiting import SECONDS

TOKEN = "a token for tests"


class Visitor:
    """One browser: its cookies, and the word that its changes carry."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(console.app), base_url="http://localhost")

    async def get(self, path: str, **query: Any) -> Any:
        """What a GET answers; the status must be 200."""
        answer = await self.http.get(path, params=query or None)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def until(self, path: str, condition: Callable[[Any], object], **query: Any) -> Any:
        """What a GET answers once it is so."""
        async with asyncio.timeout(SECONDS):
            while not condition(answer := await self.get(path, **query)):
                self.console.parts.view.forget()  # each look asks anew
                await asyncio.sleep(0.05)
        return answer

    async def change(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        """What a change answers, with the session's word."""
        csrf = (await self.get("/api/session"))["csrf"]
        answer = await self.http.request(method, path, json=body or {}, headers={"X-Skyrocket-Csrf": csrf})
        assert answer.status_code == status, answer.text
        return answer.json()

    async def post(self, path: str, body: Any = None, *, status: int = 200) -> Any:
        return await self.change("POST", path, body, status=status)

    async def log_in(self) -> None:
        """With the token, as the operator."""
        await self.post("/api/login", {"token": TOKEN})


@contextlib.asynccontextmanager
async def console_of(cluster: AsyncLocalCluster, **settings: Any) -> AsyncIterator[Visitor]:
    """Not behind a port: requests go into the application."""
    credentials: Acl | None = settings.pop("credentials", None)
    client = replace(cluster.client_settings, credentials=credentials)
    console = Console(ConsoleSettings(client, token=TOKEN, **settings))
    await console.open()
    visitor = Visitor(console)
    try:
        async with visitor.http:
            yield visitor
    finally:
        console.parts.streams.closing.set()
        await console.close()
