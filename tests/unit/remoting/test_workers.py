"""Threads for handlers that read much."""

import asyncio
import threading

import pytest

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import QueryNotFound, SystemBusy
from skyrocket.protocol.frames import FrameReader
from skyrocket.remoting.admission import RequestClass
from skyrocket.remoting.answers import LaterAnswer, Outcome
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.workers import Workers
from skyrocket.testing.clock import FakeClock
from tests.unit.remoting.peers import RawPeer, request, serving

SLOW, QUICK = 12, 30


class Reading:
    """A handler that waits until it may go on."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.threads: set[int] = set()

    def __call__(self, _: Peer, command: RemotingCommand) -> Outcome:
        self.threads.add(threading.get_ident())
        assert self.may_go_on.wait(10)
        if command.body == b"missing":
            raise QueryNotFound("not there")
        if command.body == b"bug":
            raise ValueError("a bug")
        return command.answer(0, None, None, command.body)


def routed(workers: Workers, reading: Reading, limit: int = 100) -> Router:
    router = Router()
    query = RequestClass("query", limit, wait_limit_ms=200)
    router.register(SLOW, workers.beside(reading, query), query)
    router.register(QUICK, lambda _, command: command.answer(0))
    return router


async def test_the_loop_goes_on_while_threads_read() -> None:
    workers, reading = Workers(2, FakeClock()), Reading()
    async with serving(routed(workers, reading)) as (_, address), RawPeer.connected(address) as peer:
        for opaque, body in enumerate((b"one", b"missing", b"bug", b"four")):
            peer.send(request(SLOW, opaque, body))
        assert (await peer.asks(request(QUICK, 99))).opaque == 99
        assert workers.waiting_count == 2
        reading.may_go_on.set()
        answers = {(answer := await peer.command()).opaque: answer for _ in range(4)}
    await workers.close()
    assert [answers[opaque].code for opaque in range(4)] == [0, 22, 1, 0]
    assert answers[0].body == b"one"
    assert answers[1].remark == "not there"
    assert (answers[2].remark or "").startswith("ValueError: a bug")
    assert len(reading.threads) == 2
    assert threading.get_ident() not in reading.threads


async def test_who_waits_too_long_for_a_thread_is_swept_and_the_others_stay() -> None:
    clock, reading = FakeClock(), Reading()
    workers, woken = Workers(1, clock), asyncio.Event()
    workers.on_wait = woken.set
    async with serving(routed(workers, reading)) as (_, address), RawPeer.connected(address) as peer:
        peer.send(request(SLOW, 0) + request(SLOW, 1))
        await asyncio.wait_for(woken.wait(), 60)
        clock.advance(ms=150)
        peer.send(request(SLOW, 2))
        while workers.waiting_count < 2:
            await asyncio.sleep(0.01)
        workers.sweep()
        assert workers.waiting_count == 2
        clock.advance(ms=51)
        workers.sweep()
        assert workers.waiting_count == 1
        refused = await peer.command()
        assert (refused.opaque, refused.code) == (1, SystemBusy.code)
        assert (refused.remark or "").endswith("period in queue: 201ms, size of queue: 1")
        reading.may_go_on.set()
        assert {(await peer.command()).opaque, (await peer.command()).opaque} == {0, 2}
    await workers.close()


async def test_a_stop_does_not_wait_for_those_that_have_no_thread() -> None:
    workers, reading = Workers(1, FakeClock()), Reading()
    router = routed(workers, reading)
    async with serving(router) as (server, address), RawPeer.connected(address) as peer:
        peer.send(request(SLOW, 0) + request(SLOW, 1))
        while not workers.waiting_count:
            await asyncio.sleep(0.01)
        await server.stop(drain_seconds=0.1)
        reading.may_go_on.set()
        await workers.close()
        assert workers.waiting_count == 0


@pytest.mark.parametrize("outcome", [LaterAnswer(RemotingCommand(SLOW))])
async def test_a_handler_in_a_thread_answers_at_once(outcome: Outcome) -> None:
    workers = Workers(1, FakeClock())
    router, query = Router(), RequestClass("query", 9)
    router.register(SLOW, workers.beside(lambda _, __: outcome, query), query)
    async with serving(router) as (_, address), RawPeer.connected(address) as peer:
        answer = await peer.asks(request(SLOW))
        assert (answer.code, (answer.remark or "").split(",")[0][:14]) == (1, "AssertionError")
    await workers.close()
    assert not FrameReader().pending
