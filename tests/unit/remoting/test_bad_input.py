"""What the real servers do with bytes that are no requests, and 100,000 frames of any kind."""

import asyncio
import base64
import json
import random
import resource
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from skyrocket.config.sections import TlsConfig
from skyrocket.protocol.command import ONEWAY_FLAG, RemotingCommand
from skyrocket.protocol.frames import FrameReader, encode
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.event_loop import run
from skyrocket.remoting.peer import CloseReason
from skyrocket.remoting.router import NOT_ON_VIP_PORT, Router
from skyrocket.remoting.server import RemotingServer
from skyrocket.remoting.tls import ServerTls
from tests import ROOT
from tests.unit.remoting.peers import ECHO, LOCALHOST, RawPeer, echo_router, request, serving

CAPTURES = ROOT / "tests" / "golden_wire"


class Case(NamedTuple):
    """One connection of a capture."""

    name: str
    sent: bytes
    answer: RemotingCommand | None
    closed_by_server: bool


def cases(name: str) -> Iterator[Case]:
    path = CAPTURES / f"{name}.jsonl"
    connections: dict[int, list[dict[str, Any]]] = {}
    for line in path.read_text().splitlines():
        event = json.loads(line)
        connections.setdefault(event["conn"], []).append(event)
    for number, events in connections.items():
        sent = b"".join(_raw(event) for event in events if event["peer"].startswith("client->"))
        received = b"".join(_raw(event) for event in events if event["peer"].endswith("->client"))
        answers = FrameReader().receive(received)
        closed = next((event["peer"] for event in events if event.get("event")), "")
        yield Case(f"{name}-{number}", sent, answers[0] if answers else None, closed.endswith("->client"))


def _raw(event: dict[str, Any]) -> bytes:
    return base64.b64decode(event["raw"]) if "raw" in event else b""


def framing_cases() -> list[Case]:
    """Those that are decided before any handler: framing errors, unknown codes, unwanted answers."""
    all_cases = [case for name in ("badinput54-bk", "badinput54-ns") for case in cases(name)]
    # RocketMQ's TLS waits for the rest of a nonsensical handshake until its time is over; OpenSSL sees it at once.
    return [c for c in all_cases if (c.answer is None or c.answer.code == 3) and not c.sent.startswith(b"\x16")]


@pytest.mark.parametrize("case", framing_cases(), ids=lambda case: case.name)
async def test_bad_input_has_the_effect_it_has_on_the_real_server(case: Case) -> None:
    tls = ServerTls(TlsConfig())
    async with serving(Router(), tls=tls) as (_, address), RawPeer.connected(address) as peer:
        peer.send(case.sent)
        if case.answer is not None:
            answer = await peer.command()
            assert (answer.code, answer.remark) == (case.answer.code, case.answer.remark)
            assert (answer.opaque, answer.ext_fields) == (case.answer.opaque, case.answer.ext_fields)
            assert answer == case.answer
        if case.closed_by_server:
            assert await peer.is_closed()
        else:
            assert await peer.is_quiet(0.05)


def test_the_captures_have_the_cases() -> None:
    assert len(framing_cases()) >= 35


@pytest.mark.parametrize("case", list(cases("badinput54-vip")), ids=lambda case: case.name)
async def test_the_vip_port_refuses_what_the_real_one_refuses(case: Case) -> None:
    router = Router()
    router.register(NOT_ON_VIP_PORT, lambda _, command: command.answer(0))
    router.register(310, lambda _, command: command.answer(1))
    async with RemotingServer(router) as server:
        address = await server.listen(LOCALHOST, 0, without=NOT_ON_VIP_PORT)
        async with RawPeer.connected(address) as peer:
            answer = await peer.asks(case.sent)
            assert case.answer is not None
            assert answer.code == case.answer.code
            if answer.code == 3:
                assert answer == case.answer


# ── 100,000 frames ───────────────────────────────────────────────────────────────────────────────────────────────────

_FRAMES = 100_000
_MIN_PER_CONNECTION, _MAX_PER_CONNECTION = 20, 60


def random_frame(rng: random.Random) -> bytes:
    """A frame that has a sound length, whatever is in it otherwise."""
    kind = rng.randrange(8)
    if kind == 0:
        return request(ECHO, rng.randrange(1 << 31), rng.randbytes(rng.randrange(300)))
    if kind == 1:
        return request(rng.randrange(-(1 << 31), 1 << 31), rng.randrange(1 << 31), oneway=rng.random() < 0.5)
    if kind == 2:  # an answer nobody waits for
        return encode(RemotingCommand(rng.randrange(300), rng.randrange(1 << 31), 1, body=rng.randbytes(50)))
    if kind == 3:
        fields = {rng.randbytes(4).hex(): rng.randbytes(9).hex() for _ in range(rng.randrange(12))}
        command = RemotingCommand(
            rng.randrange(400),
            rng.randrange(99),
            ONEWAY_FLAG if rng.random() < 0.5 else 0,
            fields,
            version=493,
        )
        return encode(command.as_binary())
    if kind == 4:
        return b"\0\0\0\4\0\0\0\0"
    if kind == 5:  # headers as other languages write them
        header = rng.choice(
            (
                b'{"code":"34","language":9,"opaque":"77","flag":0,"version":"3"}',
                b"{'code':9999,'opaque':5,}",
                b'{"code":11,"opaque":3,"extFields":{"a":1,"b":true,"c":null}}',
                b'{"code":null,"flag":2}',
                b"{}",
            )
        )
        return _framed(header)
    if kind == 6:
        return request(ECHO, 1, oneway=True, body=rng.randbytes(20))
    return request(ECHO, version=rng.randrange(-5, 32767))


def random_killer(rng: random.Random) -> bytes:
    """What ends a connection, in most cases."""
    kind = rng.randrange(7)
    if kind == 0:
        return rng.randbytes(rng.randrange(1, 200))
    if kind == 1:
        return rng.randrange(-(1 << 31), 1 << 31).to_bytes(4, "big", signed=True) + rng.randbytes(20)
    if kind == 2:
        return _framed(rng.randbytes(rng.randrange(1, 60)))
    if kind == 3:
        return _framed(b"[" * rng.randrange(1, 5000))
    if kind == 4:
        return _framed(rng.randbytes(40), form=1)
    if kind == 5:
        whole = bytearray(request(ECHO))
        whole[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        return bytes(whole)
    return request(ECHO, body=bytes(100))[: rng.randrange(1, 100)]  # the rest never comes


def _framed(header: bytes, form: int = 0) -> bytes:
    return (len(header) + 4).to_bytes(4, "big") + bytes([form]) + len(header).to_bytes(3, "big") + header


class _Attacker(asyncio.Protocol):
    """Sends, ends its side, and is done when the server has closed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(self._data)  # type: ignore[attr-defined]
        transport.write_eof()  # type: ignore[attr-defined]

    def connection_lost(self, error: Exception | None) -> None:
        self.done.set_result(None)


async def _attack(address: Address, rng: random.Random, frames: int) -> int:
    sent = 0
    while sent < frames:
        count = rng.randrange(_MIN_PER_CONNECTION, _MAX_PER_CONNECTION)
        data = b"".join(random_frame(rng) for _ in range(count)) + random_killer(rng)
        loop = asyncio.get_running_loop()
        _, attacker = await loop.create_connection(lambda d=data: _Attacker(d), *address)  # type: ignore[misc]
        await attacker.done
        sent += count + 1
    return sent


async def _hundred_thousand_frames() -> None:
    async with RemotingServer(echo_router()) as server:
        address = await server.listen(LOCALHOST, 0)
        async with RawPeer.connected(address) as unharmed, asyncio.TaskGroup() as group:
            attacks = [group.create_task(_attack(address, random.Random(seed), _FRAMES // 8)) for seed in range(8)]
            asked, memory_kb = 0, 0
            while not all(attack.done() for attack in attacks):
                asked += 1
                assert (await unharmed.asks(request(opaque=asked))).opaque == asked
                if asked == 20:
                    memory_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                await asyncio.sleep(0.005)
            assert asked > 20
            assert sum([await attack for attack in attacks]) >= _FRAMES
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_kb < 64 << 10
            assert server.connection_count == 1
            assert server.counters.closed[CloseReason.PROTOCOL] > 500
            assert sum(route.failed for route in server.router.routes()) == 0


def test_a_hundred_thousand_frames_of_any_kind_harm_nobody() -> None:
    run(asyncio.wait_for(_hundred_thousand_frames(), 60))
