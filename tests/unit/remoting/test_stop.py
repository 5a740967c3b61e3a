"""A server stops in order, whatever its peers and handlers are doing."""

import asyncio

import pytest

from skyrocket.protocol.command import RemotingCommand
from skyrocket.remoting.answers import Answer, LaterAnswer, Outcome
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import RemotingServer
from tests.unit.remoting.peers import ECHO, LOCALHOST, RawPeer, echo, request
from tests.waiting import until

SLOW, HELD = 17, 11


async def _slowly(command: RemotingCommand, seconds: float) -> Answer:
    await asyncio.sleep(seconds)
    return command.answer(0)


def slow_router(seconds: float) -> Router:
    router = Router()
    router.register(ECHO, echo)
    router.register(SLOW, lambda _, command: _slowly(command, seconds))
    return router


async def test_what_is_in_hand_is_answered_before_the_end() -> None:
    server = RemotingServer(slow_router(0.1))
    address = await server.listen(LOCALHOST, 0)
    async with RawPeer.connected(address) as peer:
        peer.send(request(SLOW, 1) + request(SLOW, 2))
        await until(lambda: len(server.router.tasks) == 2)
        stopping = asyncio.create_task(server.stop(drain_seconds=60))
        await asyncio.sleep(0.02)
        peer.send(request(ECHO, 3))
        assert sorted(answer.opaque for answer in await peer.commands(2)) == [1, 2]
        assert await peer.is_closed()
        await stopping
    assert server.connection_count == 0


async def test_what_takes_too_long_is_cancelled() -> None:
    server = RemotingServer(slow_router(60))
    address = await server.listen(LOCALHOST, 0)
    async with RawPeer.connected(address) as peer:
        peer.send(request(SLOW))
        await until(lambda: len(server.router.tasks) == 1)
        began = asyncio.get_running_loop().time()
        await server.stop(drain_seconds=0.1)
        assert asyncio.get_running_loop().time() - began < 30
        assert await peer.is_closed()
    assert len(server.router.tasks) == 0
    await server.stop()


async def test_nobody_is_taken_in_any_more() -> None:
    server = RemotingServer(slow_router(0))
    address = await server.listen(LOCALHOST, 0)
    await server.stop()
    with pytest.raises(ConnectionError):
        async with RawPeer.connected(address):
            pass


async def test_a_peer_that_does_not_read_does_not_hold_up_the_end() -> None:
    router = Router()
    router.register(HELD, lambda _, command: command.answer(0, body=bytes(1 << 20)))
    server = RemotingServer(router)
    address = await server.listen(LOCALHOST, 0)
    async with RawPeer.connected(address) as peer:
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        peer.send(request(HELD) * 100)
        await until(lambda: any(not connection.is_writable for connection in server.connections()))
        began = asyncio.get_running_loop().time()
        await server.stop(drain_seconds=0.1)
        assert asyncio.get_running_loop().time() - began < 30
    assert server.connection_count == 0


async def test_who_understands_it_is_told_to_go_away_first() -> None:
    server = RemotingServer(slow_router(0))
    address = await server.listen(LOCALHOST, 0)
    async with RawPeer.connected(address) as new, RawPeer.connected(address) as old:
        await new.asks(request())
        await old.asks(request())
        stopping = asyncio.create_task(server.stop(go_away_seconds=90))
        await asyncio.sleep(0.02)
        answer = await new.asks(request(opaque=1))
        assert (answer.code, answer.remark, answer.opaque) == (1500, "please go away", 1)
        assert (await old.asks(request(opaque=2, version=407))).code == 0
        new.writer.close()
        old.writer.close()
        await asyncio.wait_for(stopping, 60)  # nobody is left: no need to wait on


async def test_held_requests_of_lost_connections_are_given_up() -> None:
    held: list[LaterAnswer] = []

    def hold(_: Peer, command: RemotingCommand) -> Outcome:
        held.append(LaterAnswer(command))
        return held[-1]

    router = Router()
    router.register(HELD, hold)
    server = RemotingServer(router)
    address = await server.listen(LOCALHOST, 0)
    async with RawPeer.connected(address) as peer:
        peer.send(request(HELD) * 10)
        await until(lambda: len(held) == 10)
        await server.stop(drain_seconds=0.05)
    assert not any(later.is_open for later in held)
    assert sum(route.request_class.in_hand for route in router.routes()) == 0
