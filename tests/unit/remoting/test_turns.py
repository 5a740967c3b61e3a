"""All frames of a turn are handled in a row, and their answers leave with one write, in order."""

import asyncio
import os
from unittest import mock

import pytest

from skyrocket.protocol.command import RemotingCommand
from skyrocket.remoting.answers import LaterAnswer, Outcome
from skyrocket.remoting.connection import Connection
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.turn import Turn
from tests.unit.remoting.peers import ECHO, RawPeer, echo, request, serving
from tests.waiting import until

AT_END, HELD = 310, 11


class Desk:
    """Handlers that answer at once, at the turn's end, or when told."""

    def __init__(self) -> None:
        self.collected: list[LaterAnswer] = []
        self.held: list[LaterAnswer] = []
        self.groups: list[int] = []
        self.router = Router()
        self.router.register(ECHO, echo)
        self.router.register(AT_END, self.at_end)
        self.router.register(HELD, self.hold)

    def at_end(self, _: Peer, command: RemotingCommand) -> Outcome:
        self.collected.append(LaterAnswer(command))
        return self.collected[-1]

    def hold(self, _: Peer, command: RemotingCommand) -> Outcome:
        self.held.append(LaterAnswer(command))
        return self.held[-1]

    def store_group(self) -> None:
        if self.collected:
            self.groups.append(len(self.collected))
            for later in self.collected:
                later.fill(later.request.answer(0))
            self.collected.clear()


async def test_pipelined_requests_are_answered_in_order_by_one_write() -> None:
    desk = Desk()
    async with serving(desk.router) as (server, address), RawPeer.connected(address) as peer:
        server.on_turn_end(desk.store_group)
        await peer.asks(request())
        with mock.patch.object(Connection, "_write", autospec=True, side_effect=Connection._write) as write:
            peer.send(b"".join(request(AT_END if n % 3 else ECHO, n) for n in range(300)))
            answers = await peer.commands(300)
        assert [answer.opaque for answer in answers] == list(range(300))
        assert write.call_count <= 3, "one write for each chunk that came"
        assert sum(desk.groups) == 200
        assert len(desk.groups) <= 3


async def test_a_held_request_does_not_hold_up_the_others() -> None:
    desk = Desk()
    async with serving(desk.router) as (server, address), RawPeer.connected(address) as peer:
        server.on_turn_end(desk.store_group)
        peer.send(request(HELD, 1) + request(ECHO, 2) + request(AT_END, 3) + request(HELD, 4))
        assert [answer.opaque for answer in await peer.commands(2)] == [2, 3]
        [connection] = server.connections()
        assert connection.unanswered_count == 2
        for later in reversed(desk.held):
            later.fill([b"", later.request.answer(0).body, b""])  # pieces of nothing
        assert await peer.is_quiet()
        assert connection.unanswered_count == 0


async def test_a_turn_of_oneway_requests_alone_has_an_end_too() -> None:
    desk = Desk()
    async with serving(desk.router) as (server, address), RawPeer.connected(address) as peer:
        server.on_turn_end(desk.store_group)
        peer.send(request(AT_END, 1, oneway=True) * 3)
        await until(lambda: sum(desk.groups) == 3)


async def test_late_answers_of_one_turn_leave_together() -> None:
    desk = Desk()
    async with serving(desk.router) as (_, address), RawPeer.connected(address) as peer:
        peer.send(b"".join(request(HELD, n) for n in range(20)))
        await until(lambda: len(desk.held) == 20)
        await asyncio.sleep(0.01)
        with mock.patch.object(Connection, "_write", autospec=True, side_effect=Connection._write) as write:
            for later in desk.held:
                later.fill(later.request.answer(0, body=b"x" * 10))
            answers = await peer.commands(20)
        assert [answer.opaque for answer in answers] == list(range(20))
        assert write.call_count == 1


async def test_requests_of_several_connections_make_one_group() -> None:
    desk = Desk()
    async with serving(desk.router) as (server, address):
        server.on_turn_end(desk.store_group)
        async with RawPeer.connected(address) as a, RawPeer.connected(address) as b, RawPeer.connected(address) as c:
            for peer in (a, b, c):
                await peer.asks(request())
            for peer in (a, b, c):
                sock = peer.writer.get_extra_info("socket")
                os.write(sock.fileno(), request(AT_END, 9))  # all are there before the server looks
            for peer in (a, b, c):
                assert (await peer.command()).opaque == 9
        assert desk.groups == [3]


async def test_an_answer_for_a_lost_connection_is_dropped() -> None:
    desk = Desk()
    async with serving(desk.router) as (server, address):
        async with RawPeer.connected(address) as peer:
            peer.send(request(HELD, 1))
            await until(lambda: desk.held)
            await asyncio.sleep(0.01)
        await until(lambda: server.connection_count == 0)
        [later] = desk.held
        assert not later.is_open
        later.fill(later.request.answer(0))
        assert sum(route.request_class.in_hand for route in desk.router.routes()) == 0


async def test_a_callback_that_fails_does_not_stop_the_answers() -> None:
    async with serving() as (server, address), RawPeer.connected(address) as peer:
        server.on_turn_end(lambda: [][1])
        assert (await peer.asks(request(opaque=3))).opaque == 3


async def test_a_frame_in_pieces_and_large_bodies() -> None:
    async with serving() as (_, address), RawPeer.connected(address) as peer:
        body = bytes(range(256)) * 4096 * 3  # 3 MiB: pieces in, pieces out
        frame = request(opaque=5, body=body)
        for at in range(0, len(frame), 100_001):
            peer.send(frame[at : at + 100_001])
            await peer.writer.drain()
        answer = await peer.command()
        assert bytes(answer.body) == body
        for byte in request(opaque=6):
            peer.send(bytes([byte]))
            await asyncio.sleep(0)
        assert (await peer.command()).opaque == 6


async def test_a_peer_that_ends_its_side_still_gets_its_answers() -> None:
    async with serving() as (server, address), RawPeer.connected(address) as peer:
        peer.send(request(opaque=1) + request(opaque=2))
        peer.writer.write_eof()
        assert [answer.opaque for answer in await peer.commands(2)] == [1, 2]
        assert await peer.is_closed()
        await until(lambda: server.connection_count == 0)


class Listener:
    """Counts how often it may speak."""

    def __init__(self) -> None:
        self.flushed = 0

    def flush(self) -> None:
        self.flushed += 1


@pytest.mark.parametrize(("taken", "looks"), [(7, 1), (8, 2), (500, 2)])
async def test_who_brings_much_is_looked_at_once_more_before_the_turn_ends(taken: int, looks: int) -> None:
    turn, listener = Turn(), Listener()
    turn.taken = taken
    turn.will_speak(listener)
    seen = 0
    while not listener.flushed:
        await asyncio.sleep(0)  # the loop has looked at the sockets
        seen += 1
    assert seen == looks
    assert (turn.taken, turn.looks_again, turn.number) == (0, False, 1)
