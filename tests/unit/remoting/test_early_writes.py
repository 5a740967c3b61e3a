"""Large answers leave while the next ones are put together; all of them arrive in order, whatever the peer does."""

import asyncio
import socket

import pytest

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import FrameReader, encode_head
from skyrocket.remoting.answers import LaterAnswer, Outcome
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import RemotingServer
from skyrocket.remoting.tls import TlsMode
from tests.unit.remoting.peers import LOCALHOST, request, serving
from tests.unit.remoting.test_tls import TRUSTS_ANYONE, in_mode

LARGE, LATER = 11, 310


class Shelf:
    """Gives out much, in two pieces; `seen` is what has reached the peer when each request is handled."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.peer: socket.socket | None = None
        self.seen: list[int] = []
        self.later: list[LaterAnswer] = []
        self.router = Router()
        self.router.register(LARGE, self.give)
        self.router.register(LATER, self.hold)

    def give(self, _: Peer, command: RemotingCommand) -> Outcome:
        if self.peer is not None:
            try:
                self.seen.append(len(self.peer.recv(1 << 20, socket.MSG_PEEK)))
            except BlockingIOError:
                self.seen.append(0)
        body = bytes([command.opaque % 251]) * self.size
        return [encode_head(command.answer(0), self.size), memoryview(body)]

    def hold(self, _: Peer, command: RemotingCommand) -> Outcome:
        self.later.append(LaterAnswer(command))
        return self.later[-1]

    def fill(self) -> None:
        while self.later:
            later = self.later.pop()
            later.fill(later.request.answer(0))


async def asked(server: RemotingServer, shelf: Shelf, frames: bytes, answers: int) -> list[RemotingCommand]:
    """What comes back to frames that were sent at once."""
    address = await server.listen(LOCALHOST, 0)
    loop = asyncio.get_running_loop()
    with socket.socket() as peer:
        peer.setblocking(False)
        await loop.sock_connect(peer, (address.host, address.port))
        shelf.peer = peer
        await loop.sock_sendall(peer, frames)
        reader, found = FrameReader(), list[RemotingCommand]()
        async with asyncio.timeout(20):
            while len(found) < answers:
                found += reader.receive(await loop.sock_recv(peer, 1 << 16))
        return found


def many(count: int, code: int = LARGE) -> bytes:
    return b"".join(request(code, number) for number in range(count))


def assert_all(shelf: Shelf, found: list[RemotingCommand], count: int) -> None:
    assert [answer.opaque for answer in found] == list(range(count))
    assert all(bytes(answer.body) == bytes([answer.opaque % 251]) * shelf.size for answer in found)


async def test_the_first_answers_arrive_before_the_last_request_is_handled() -> None:
    shelf = Shelf(20_000)
    async with serving(shelf.router) as (server, _):
        assert_all(shelf, await asked(server, shelf, many(8), 8), 8)
    assert shelf.seen[:2] == [0, 0]
    assert shelf.seen[-1] > 40_000


async def test_small_answers_leave_together_at_the_end() -> None:
    shelf = Shelf(1_000)
    async with serving(shelf.router) as (server, _):
        assert_all(shelf, await asked(server, shelf, many(8), 8), 8)
    assert shelf.seen == [0] * 8


@pytest.mark.parametrize("size", [40_000, 1_000_000])
async def test_what_the_socket_does_not_take_follows_in_order(size: int) -> None:
    shelf = Shelf(size)
    async with serving(shelf.router) as (server, _):
        assert_all(shelf, await asked(server, shelf, many(100), 100), 100)


async def test_nothing_overtakes_an_answer_that_may_still_come_in_this_turn() -> None:
    shelf = Shelf(40_000)
    frames = request(LATER, 0) + b"".join(request(LARGE, number) for number in range(1, 6))
    async with serving(shelf.router) as (server, _):
        server.on_turn_end(shelf.fill)
        found = await asked(server, shelf, frames, 6)
    assert [answer.opaque for answer in found] == list(range(6))
    assert shelf.seen == [0] * 5


async def test_a_tls_connection_is_written_by_its_session_alone() -> None:
    shelf = Shelf(40_000)
    async with serving(shelf.router, tls=in_mode(TlsMode.ENFORCING)) as (_, address):
        reader, writer = await asyncio.open_connection(address.host, address.port, ssl=TRUSTS_ANYONE)
        writer.write(many(8))
        frames, found = FrameReader(), list[RemotingCommand]()
        async with asyncio.timeout(20):
            while len(found) < 8:
                found += frames.receive(await reader.read(1 << 16))
        assert_all(shelf, found, 8)
        writer.close()


async def test_a_peer_that_is_gone_harms_nobody() -> None:
    shelf = Shelf(40_000)
    async with serving(shelf.router) as (server, address):
        for _ in range(5):
            with socket.create_connection((address.host, address.port)) as peer:
                peer.sendall(many(16))
            await asyncio.sleep(0.02)
        assert_all(shelf, await asked(server, shelf, many(4), 4), 4)
