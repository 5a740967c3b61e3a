"""A webhook that answers, and those that do not speak HTTP, send elsewhere, or never end their answer."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from skyrocket.console.alerts.news import News
from skyrocket.console.telling.outbox import Outbox
from skyrocket.console.telling.webhook import post
from skyrocket.testing.clock import FakeClock
from tests.waiting import until

BEGAN = News(1_760_000_000_000, "r", "lag", "Übung", "warning", 5, 1, is_firing=True)


class Hook:
    """Notes what is asked of it, and gives one answer to everything."""

    def __init__(self, answer: bytes, *, stays: bool = False) -> None:
        self._answer = answer
        self._stays = stays
        self.asked: list[tuple[str, bytes]] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/told"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            size = int(head.split("content-length:")[1].split()[0]) if "content-length" in head else 0
            self.asked.append((head.split()[0], await reader.readexactly(size)))
            writer.write(self._answer)
            await writer.drain()
            if self._stays:
                await reader.read()  # until the other side goes
        writer.close()


@contextlib.asynccontextmanager
async def listening(hook: Hook) -> AsyncIterator[Hook]:
    server = await asyncio.start_server(hook.serve, "127.0.0.1", 0)
    async with server:
        hook.port = server.sockets[0].getsockname()[1]
        yield hook


def answer(status: str, *headers: str, body: str = "") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", body]).encode()


async def test_a_webhook_hears_of_alerts_as_json() -> None:
    async with listening(Hook(answer("204 No Content"))) as hook:
        await asyncio.to_thread(post, hook.url, "alerts", [BEGAN])
    ((method, body),) = hook.asked
    assert method == "post"
    assert json.loads(body)["alerts"][0]["name"] == "Übung"


@pytest.mark.parametrize(
    "garbage", [b"SSH-2.0-OpenSSH_9.6\r\n", b"220 mail.example.org ESMTP\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\x16\x03\x01"]
)
async def test_what_does_not_speak_http_is_tried_again_and_ends_nothing(garbage: bytes) -> None:
    async with listening(Hook(garbage)) as hook:
        with pytest.raises(OSError):
            await asyncio.to_thread(post, hook.url, "alerts", [BEGAN])


async def test_a_webhook_that_sends_elsewhere_is_not_asked_there_without_the_alerts() -> None:
    async with (
        listening(Hook(answer("200 OK"))) as elsewhere,
        listening(Hook(answer("302 Found", f"Location: {elsewhere.url}", "Content-Length: 0"))) as hook,
    ):
        with pytest.raises(OSError, match="302"):
            await asyncio.to_thread(post, hook.url, "alerts", [BEGAN])
    assert elsewhere.asked == []


async def test_an_answer_that_never_ends_is_not_waited_for() -> None:
    endless = answer("200 OK", "Content-Length: 1000000000", body="x" * 100)
    async with listening(Hook(endless, stays=True)) as hook:
        await asyncio.to_thread(post, hook.url, "alerts", [BEGAN])


async def test_an_outbox_is_idle_when_all_was_told() -> None:
    told: list[str] = []
    outbox: Outbox[News] = Outbox("ops", lambda news: told.append(news[0].name), FakeClock())
    assert outbox.is_idle
    outbox.put([BEGAN])
    assert not outbox.is_idle
    running = asyncio.create_task(outbox.run())
    await until(lambda: outbox.is_idle)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert told == ["Übung"]
