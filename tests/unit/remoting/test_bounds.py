"""Slow, idle, greedy and too many peers: memory stays bounded and the others are served."""

import asyncio
import socket

import pytest

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import MAX_FRAME_SIZE
from skyrocket.remoting.answers import LaterAnswer, Outcome
from skyrocket.remoting.connection import Connection
from skyrocket.remoting.limits import ConnectionLimits
from skyrocket.remoting.peer import CloseReason, Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import ServerSettings
from skyrocket.testing.clock import FakeClock
from tests.unit.remoting.peers import ECHO, LOCALHOST, RawPeer, echo_router, request, serving
from tests.waiting import until

LARGE, HELD = 11, 12


def with_large_answers(size: int) -> Router:
    router = echo_router()
    router.register(LARGE, lambda _, command: command.answer(0, body=bytes(size)))
    return router


async def test_a_peer_that_never_reads_is_not_read_either() -> None:
    router = with_large_answers(64 << 10)
    async with serving(router) as (server, address), RawPeer.connected(address) as other:
        with socket.socket() as greedy:
            greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
            greedy.connect(address)
            greedy.setblocking(False)
            asked, frame = 0, request(LARGE)
            for _ in range(200):
                try:
                    asked += greedy.send(frame * 100)
                except BlockingIOError:
                    await asyncio.sleep(0.005)
                assert (await other.asks(request(opaque=7))).opaque == 7
            [connection] = [c for c in server.connections() if not c.is_writable]
            limits = ConnectionLimits()
            assert connection.unsent_size < limits.write_high_water + (64 << 10) + (1 << 20)
            handled = next(route.requests for route in router.routes() if route.code == LARGE)
            assert handled < 200, "the rest waits in the socket"
            assert asked > handled * len(frame)
            greedy.setblocking(True)
            received = 0
            while received < 8 << 20:  # when it reads, it is served on
                received += len(await asyncio.to_thread(greedy.recv, 1 << 20))
            await until(lambda: next(r.requests for r in router.routes() if r.code == LARGE) > handled)


async def test_answers_that_are_never_taken_cut_the_connection_off() -> None:
    held: list[LaterAnswer] = []

    def hold(_: Peer, command: RemotingCommand) -> Outcome:
        held.append(LaterAnswer(command))
        return held[-1]

    router = echo_router()
    router.register(HELD, hold)
    settings = ServerSettings(limits=ConnectionLimits(max_unsent=1 << 20))
    async with serving(router, settings) as (server, address), RawPeer.connected(address) as peer:
        transport = peer.writer.transport
        assert isinstance(transport, asyncio.ReadTransport) or hasattr(transport, "pause_reading")
        transport.pause_reading()
        peer.send(b"".join(request(HELD, n) for n in range(100)))
        await until(lambda: len(held) == 100)
        for later in held:
            later.fill(later.request.answer(0, body=bytes(1 << 20)))
            await asyncio.sleep(0)
        await until(lambda: server.connection_count == 0)
        assert server.counters.closed[CloseReason.SLOW] == 1


async def test_unanswered_requests_are_bounded() -> None:
    held: list[LaterAnswer] = []

    def hold(_: Peer, command: RemotingCommand) -> Outcome:
        held.append(LaterAnswer(command))
        return held[-1]

    router = Router()
    router.register(HELD, hold)
    limits = ConnectionLimits(max_unanswered=10, write_high_water=2560, write_low_water=0)
    async with serving(router, ServerSettings(limits=limits)) as (_, address), RawPeer.connected(address) as peer:
        peer.send(b"".join(request(HELD, n) for n in range(1000)))
        await until(lambda: len(held) >= 10)
        await asyncio.sleep(0.05)
        assert len(held) < 40, "what came in one turn, and no more"
        answered = 0
        while answered < 1000:
            for later in held[answered:]:
                later.fill(later.request.answer(0))
                answered += 1
            await asyncio.sleep(0)
            assert len(held) - answered < 40
        assert sorted(answer.opaque for answer in await peer.commands(1000)) == list(range(1000))


async def test_a_connection_without_a_sound_is_closed() -> None:
    clock = FakeClock()
    async with serving(settings=ServerSettings(idle_seconds=10), clock=clock) as (server, address):
        reasons: list[CloseReason] = []
        server.on_close(lambda _, reason: reasons.append(reason))
        async with RawPeer.connected(address) as silent, RawPeer.connected(address) as busy:
            await until(lambda: server.connection_count == 2)
            for _ in range(2):
                clock.advance(seconds=6)
                await busy.asks(request())
            server.sweep()
            assert await silent.is_closed()
            assert (await busy.asks(request(opaque=1))).opaque == 1
            clock.advance(seconds=11)
            server.sweep()
            assert await busy.is_closed()
        assert reasons == [CloseReason.IDLE]  # the silent one had never said what it was
        assert server.counters.closed[CloseReason.IDLE] == 2


async def test_two_minutes_of_silence_are_the_limit() -> None:
    clock = FakeClock()
    async with serving(clock=clock) as (server, address), RawPeer.connected(address) as peer:
        await peer.asks(request())
        clock.advance(seconds=119)
        server.sweep()
        await peer.asks(request())
        clock.advance(seconds=119)
        server.sweep()
        assert await peer.is_quiet(0.05)
        clock.advance(seconds=1)
        server.sweep()
        assert await peer.is_closed()


async def test_slow_loris_is_cut_off_though_it_is_never_idle() -> None:
    clock = FakeClock()
    async with serving(clock=clock) as (server, address), RawPeer.connected(address) as loris:
        await loris.asks(request())
        loris.send((1 << 20).to_bytes(4, "big"))
        [connection] = server.connections()
        for _ in range(12):
            loris.send(b"\0")
            before = connection.incomplete_size
            await until(lambda: connection.incomplete_size > before)  # noqa: B023 - awaited at once
            assert connection.incomplete_size < 100, "what was only announced costs nothing"
            clock.advance(seconds=11)
            server.sweep()
        assert await loris.is_closed()
        assert server.counters.closed[CloseReason.SLOW] == 1


async def test_a_large_frame_that_makes_progress_in_time_is_no_loris() -> None:
    clock = FakeClock()
    async with serving(clock=clock) as (server, address), RawPeer.connected(address) as peer:
        for opaque in range(3):  # always in the middle of some frame when the sweep comes
            frame = request(opaque=opaque)
            peer.send(frame[:50])
            await asyncio.sleep(0.02)
            clock.advance(seconds=70)
            server.sweep()
            assert (await peer.asks(frame[50:])).opaque == opaque


@pytest.mark.parametrize("size", [MAX_FRAME_SIZE - 3, 100 << 20, 0x7FFFFFFF])
async def test_an_oversized_frame_closes_at_once(size: int) -> None:
    async with serving() as (server, address), RawPeer.connected(address) as peer:
        peer.send(size.to_bytes(4, "big"))
        assert await peer.is_closed()
        assert server.counters.closed[CloseReason.PROTOCOL] == 1


async def test_complete_requests_before_a_broken_one_are_answered() -> None:
    async with serving() as (_, address), RawPeer.connected(address) as peer:
        peer.send(request(opaque=1) + request(opaque=2) + b"\xff" * 40)
        assert [answer.opaque for answer in await peer.commands(2)] == [1, 2]
        assert await peer.is_closed()


async def test_the_number_of_connections_is_bounded() -> None:
    async with serving(settings=ServerSettings(max_connections=2, max_connections_per_address=9)) as (server, address):
        async with RawPeer.connected(address) as a, RawPeer.connected(address) as b:
            await a.asks(request())
            await b.asks(request())
            async with RawPeer.connected(address) as c:
                assert await c.is_closed()
            assert server.counters.refused == 1
            assert (await a.asks(request(opaque=1))).opaque == 1
        await until(lambda: server.connection_count == 0)
        async with RawPeer.connected(address) as d:
            assert (await d.asks(request(opaque=4))).opaque == 4


async def test_listeners_share_a_router_but_not_all_codes() -> None:
    async with serving(with_large_answers(1)) as (server, address):
        vip = await server.listen(LOCALHOST, 0, without={LARGE})
        async with RawPeer.connected(address) as main, RawPeer.connected(vip) as fast:
            assert (await main.asks(request(LARGE))).code == 0
            answer = await fast.asks(request(LARGE))
            assert (answer.code, answer.remark) == (3, " request type 11 not supported")
            assert (await fast.asks(request(ECHO))).code == 0


async def test_upper_layers_know_connections() -> None:
    seen: list[Peer] = []
    closed: list[tuple[Peer, CloseReason]] = []

    def remember(peer: Peer, command: RemotingCommand) -> Outcome:
        seen.append(peer)
        peer.attributes["client id"] = "c1"
        peer.on_close(lambda closed_peer, reason: closed.append((closed_peer, reason)))
        return command.answer(0)

    router = Router()
    router.register(34, remember)
    async with serving(router) as (_, address):
        async with RawPeer.connected(address) as client:
            await client.asks(request(34))
            [peer] = seen
            host, port = client.writer.get_extra_info("sockname")
            assert peer.remote_address == (host, port)
            assert str(peer.remote_address) == f"{host}:{port}"
            assert peer.attributes == {"client id": "c1"}
            assert peer.is_open
            assert peer.is_writable
            assert isinstance(peer, Connection)
            assert peer._transport is not None
            sock = peer._transport.get_extra_info("socket")
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert not sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        await until(lambda: closed)
        assert closed == [(peer, CloseReason.PEER)] or closed == [(peer, CloseReason.ERROR)]
        assert not peer.is_open
        late: list[CloseReason] = []
        peer.on_close(lambda _, reason: late.append(reason))
        assert len(late) == 1, "who asks too late is told at once"
