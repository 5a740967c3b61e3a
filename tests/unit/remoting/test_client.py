"""The client: calls, lost connections, timeouts, other addresses, requests of the server."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import GoAway, RequestNotSupported, TopicNotExist
from skyrocket.protocol.requests.offsets import GetMaxOffset
from skyrocket.protocol.requests.server_to_client import (
    GetConsumerRunningInfo,
    NotifyConsumerIdsChanged,
)
from skyrocket.remoting.addresses import AddressList
from skyrocket.remoting.answers import LaterAnswer, Outcome
from skyrocket.remoting.client import ClientSettings, RemotingClient, rest_seconds
from skyrocket.remoting.errors import (
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    NoAddressAnswered,
    RemotingClosed,
    TooManyCalls,
)
from skyrocket.remoting.limits import ConnectionLimits
from skyrocket.remoting.peer import CloseReason, Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import RemotingServer
from skyrocket.testing.clock import FakeClock
from tests.unit.remoting.peers import ECHO, LOCALHOST, RawPeer, request, serving
from tests.waiting import until

ASK = GetMaxOffset(topic="T", queue_id=3)
SILENT = RequestCode.GET_MIN_OFFSET


def offset_router(offset: int = 42) -> Router:
    router = Router()
    router.register(ECHO, lambda _, command: command.answer(0, None, {"offset": str(offset)}, command.body))
    router.register(SILENT, lambda _, __: None)
    return router


@contextmanager
def free_address() -> Iterator[str]:
    """An address where nobody listens."""
    with closing(socket.socket()) as sock:
        sock.bind((LOCALHOST, 0))
        yield f"{LOCALHOST}:{sock.getsockname()[1]}"


async def test_a_call_has_a_typed_answer() -> None:
    async with serving(offset_router()) as (server, address), RemotingClient() as client:
        reply = await client.call(str(address), ASK, b"body")
        assert reply.header.offset == 42
        assert (reply.body, reply.code, reply.remark) == (b"body", 0, None)
        await client.call_oneway(str(address), ASK)
        replies = await asyncio.gather(*(client.call(str(address), ASK, str(n).encode()) for n in range(300)))
        assert [int(bytes(reply.body)) for reply in replies] == list(range(300))
        assert server.counters.opened == 1, "one connection per address"
        assert next(server.router.routes()).requests == 302


async def test_a_refusal_is_raised_unless_it_is_accepted() -> None:
    router = Router()
    router.register(ECHO, lambda _, command: command.answer(17, "topic[T] not exist", {"offset": "-1"}))
    async with serving(router) as (_, address), RemotingClient() as client:
        with pytest.raises(TopicNotExist, match=r"topic\[T\] not exist"):
            await client.call(str(address), ASK)
        reply = await client.call(str(address), ASK, accepted={0, 17})
        assert (reply.code, reply.header.offset) == (17, -1)


async def test_a_timeout_closes_the_connection_or_keeps_it() -> None:
    async with serving(offset_router()) as (server, address), RemotingClient() as client:
        silent = RemotingCommand(SILENT)
        with pytest.raises(CallTimeout, match=rf"{address}: request 31 had no answer within"):
            await client.invoke(str(address), silent, 0.15, closes_on_timeout=False)
        await client.call(str(address), ASK)
        assert server.counters.opened == 1
        with pytest.raises(CallTimeout):
            await client.invoke(str(address), silent, 0.15)
        await until(lambda: server.connection_count == 0)
        await client.call(str(address), ASK)
        assert server.counters.opened == 2


async def test_a_cancelled_call_leaves_nothing() -> None:
    async with serving(offset_router()) as (_, address), RemotingClient() as client:
        await client.call(str(address), ASK)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.invoke(str(address), RemotingCommand(SILENT), 60), 0.05)
        connection = client.connection(str(address))
        assert connection is not None
        assert connection.calls_in_flight == 0


async def test_a_lost_connection_fails_its_calls_and_the_next_call_connects_again() -> None:
    async with serving(offset_router()) as (server, address), RemotingClient() as client:
        calls = [asyncio.create_task(client.invoke(str(address), RemotingCommand(SILENT), 60)) for _ in range(3)]
        await until(lambda: any(connection.frames_received == 3 for connection in server.connections()))
        for connection in list(server.connections()):
            connection.abort(CloseReason.LOCAL)
        errors = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(error, ConnectionLost) and str(address) in str(error) for error in errors)
        assert len({id(error) for error in errors}) == 3
        await until(lambda: client.connection(str(address)) is None)
        assert (await client.call(str(address), ASK)).header.offset == 42


async def test_an_address_that_fails_rests() -> None:
    clock = FakeClock()
    with free_address() as address:
        async with RemotingClient(clock=clock) as client:
            with pytest.raises(ConnectFailed, match=f"{address}: could not connect: nothing listens"):
                await client.call(address, ASK)
            with pytest.raises(ConnectFailed, match="next attempt in"):
                await client.call(address, ASK)
            clock.advance(seconds=rest_seconds(1) + 0.01)
            with pytest.raises(ConnectFailed, match="could not connect: nothing listens there"):
                await client.call(address, ASK)
            with pytest.raises(ConnectFailed, match="could not connect 2 times"):
                await client.call(address, ASK)
    assert [rest_seconds(n) for n in (1, 2, 3, 100)] == [0.05, 0.1, 0.2, 2.0]


async def test_what_is_no_address_is_named() -> None:
    async with RemotingClient() as client:
        with pytest.raises(ConnectFailed, match="not an address of the form"):
            await client.call("nonsense", ASK)


async def test_many_callers_share_one_attempt() -> None:
    async with serving(offset_router()) as (server, address), RemotingClient() as client:
        await asyncio.gather(*(client.call(str(address), ASK) for _ in range(50)))
        assert server.counters.opened == 1
    with free_address() as nowhere:
        async with RemotingClient() as client:
            errors = await asyncio.gather(*(client.call(nowhere, ASK) for _ in range(5)), return_exceptions=True)
            assert all(isinstance(error, ConnectFailed) for error in errors)
            assert len({id(error) for error in errors}) == 5


async def test_a_connection_that_is_not_made_in_time() -> None:
    with closing(socket.socket()) as sock:  # a full backlog: nobody answers
        sock.bind((LOCALHOST, 0))
        sock.listen(0)
        address = f"{LOCALHOST}:{sock.getsockname()[1]}"
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(sock.getsockname())
        await asyncio.sleep(0.01)
        async with RemotingClient(ClientSettings(connect_seconds=0.1)) as client:
            with pytest.raises(ConnectFailed):
                await client.call(address, ASK, timeout_seconds=5)
        async with RemotingClient() as client:
            with pytest.raises(ConnectFailed, match="not made in time"):
                await client.call(address, ASK, timeout_seconds=0.05)
        for filler in fillers:
            filler.close()


async def test_equal_servers_are_tried_in_turn() -> None:
    async with serving(offset_router()) as (_, address), RemotingClient() as client:
        with free_address() as nowhere:
            for _ in range(4):  # whoever is first
                addresses = AddressList([nowhere, str(address)])
                assert (await client.call_any(addresses, ASK)).header.offset == 42
                assert addresses.in_order()[0] == str(address)
            with pytest.raises(NoAddressAnswered, match=nowhere) as raised:
                await client.call_any(AddressList([nowhere]), ASK)
            assert len(raised.value.failures) == 1
    router = Router()
    router.register(ECHO, lambda _, command: command.answer(17, "no"))
    async with serving(router) as (_, address), RemotingClient() as client:
        with pytest.raises(TopicNotExist):  # an answer is an answer
            await client.call_any(AddressList([str(address)]), ASK)


@pytest.mark.requirement("C081")
async def test_calls_in_flight_are_bounded() -> None:
    assert ClientSettings().limits.max_calls == 65_535
    settings = ClientSettings(limits=ConnectionLimits(max_calls=2))
    async with serving(offset_router()) as (_, address), RemotingClient(settings) as client:
        calls = [asyncio.create_task(client.invoke(str(address), RemotingCommand(SILENT), 60)) for _ in range(2)]
        await until(lambda: (c := client.connection(str(address))) is not None and c.calls_in_flight == 2)
        with pytest.raises(TooManyCalls):
            await client.call(str(address), ASK)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert (await client.call(str(address), ASK)).header.offset == 42


async def test_closing_fails_what_is_pending_at_once() -> None:
    async with serving(offset_router()) as (server, address):
        client = RemotingClient()
        calls = [asyncio.create_task(client.invoke(str(address), RemotingCommand(SILENT), 60)) for _ in range(3)]
        await until(lambda: any(connection.frames_received == 3 for connection in server.connections()))
        began = asyncio.get_running_loop().time()
        await client.close()
        assert asyncio.get_running_loop().time() - began < 30
        for error in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(error, RemotingClosed)
            assert str(error) == f"{address}: the client was closed"
        with pytest.raises(RemotingClosed):
            await client.call(str(address), ASK)
        await until(lambda: server.connection_count == 0)


async def test_closing_ends_attempts_to_connect() -> None:
    client = RemotingClient()
    call = asyncio.create_task(client.call("192.0.2.1:9876", ASK, timeout_seconds=60))  # nobody is there
    await asyncio.sleep(0.02)
    await client.close()
    [error] = await asyncio.gather(call, return_exceptions=True)
    assert isinstance(error, RemotingClosed | ConnectFailed)


async def test_an_idle_connection_is_closed_by_the_client_too() -> None:
    async with (
        serving(offset_router()) as (server, address),
        RemotingClient(ClientSettings(idle_seconds=0.1)) as client,
    ):
        await client.call(str(address), ASK)
        await until(lambda: server.connection_count == 0)


async def test_requests_may_be_signed_before_they_are_sent() -> None:
    def sign(address: str, command: RemotingCommand) -> None:
        command.ext_fields = {**(command.ext_fields or {}), "AccessKey": address}

    seen: list[str] = []

    def look(_: Peer, command: RemotingCommand) -> Outcome:
        seen.append((command.ext_fields or {})["AccessKey"])
        return command.answer(0, None, {"offset": "1"})

    router = Router()
    router.register(ECHO, look)
    async with serving(router) as (_, address), RemotingClient(before_send=sign) as client:
        await client.call(str(address), ASK)
        await client.call_oneway(str(address), ASK)
        await until(lambda: len(seen) == 2)
        assert seen == [str(address)] * 2


# ── the server asks ──────────────────────────────────────────────────────────────────────────────────────────────────

INFO = GetConsumerRunningInfo(consumer_group="CG", client_id="c1")


async def test_the_server_asks_its_clients() -> None:
    told: list[RemotingCommand] = []
    router = Router()
    router.register(RequestCode.GET_CONSUMER_RUNNING_INFO, lambda _, command: command.answer(0, body=b"{}"))
    router.register(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, lambda _, command: told.append(command))
    async with serving(offset_router()) as (server, address), RemotingClient(router=router) as client:
        await client.call(str(address), ASK)
        [peer] = server.connections()
        assert bytes((await peer.call(INFO)).body) == b"{}"
        assert peer.send_oneway(NotifyConsumerIdsChanged(consumer_group="CG"))
        await until(lambda: told)
        assert told[0].is_oneway
        answers = await asyncio.gather(*(peer.call(INFO) for _ in range(50)), client.call(str(address), ASK))
        assert len(answers) == 51


async def test_a_client_answers_what_it_does_not_know() -> None:
    async with serving(offset_router()) as (server, address), RemotingClient() as client:
        await client.call(str(address), ASK)
        [peer] = server.connections()
        with pytest.raises(RequestNotSupported, match=" request type 307 not supported"):
            await peer.call(INFO)


async def test_a_client_that_does_not_answer_is_not_waited_for() -> None:
    async with serving(offset_router()) as (server, address):
        async with RawPeer.connected(address) as client:
            await client.asks(request())
            [peer] = server.connections()
            with pytest.raises(CallTimeout, match=str(peer.remote_address)):
                await peer.call(INFO, timeout_seconds=0.05)
            waiting = asyncio.create_task(peer.call(INFO, timeout_seconds=60))
            await asyncio.sleep(0.01)
        with pytest.raises(ConnectionLost):
            await waiting
        with pytest.raises(ConnectionLost):
            await peer.call(INFO)
        assert not peer.send_oneway(NotifyConsumerIdsChanged(consumer_group="CG"))


async def test_opaque_numbers_of_both_directions_do_not_meet() -> None:
    async with serving(offset_router()) as (server, address), RawPeer.connected(address) as client:
        await client.asks(request())
        [peer] = server.connections()
        call = asyncio.create_task(peer.invoke(RemotingCommand(307)))
        asked = await client.command()
        assert (await client.asks(request(opaque=asked.opaque))).opaque == asked.opaque
        assert not call.done()
        client.send(b"".join((_answer(asked.opaque + 1), _answer(asked.opaque), _answer(asked.opaque))))
        assert (await call).code == 0


def _answer(opaque: int) -> bytes:
    from skyrocket.protocol.frames import encode

    return encode(RemotingCommand(0, opaque, 1))


# ── going away ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_server_that_goes_away_is_called_again_on_a_new_connection() -> None:
    router, held = offset_router(), list[LaterAnswer]()
    went: set[Peer] = set()

    def first_go_away(peer: Peer, command: RemotingCommand) -> Outcome:
        if not went:
            went.add(peer)
        if peer in went:
            raise GoAway("please go away")
        return command.answer(0, None, {"offset": "7"})

    def hold(_: Peer, command: RemotingCommand) -> Outcome:
        held.append(LaterAnswer(command))
        return held[-1]

    router.register(11, first_go_away)
    router.register(12, hold)
    async with serving(router) as (server, address), RemotingClient() as client:
        slow = asyncio.create_task(client.invoke(str(address), RemotingCommand(12), 5))
        await until(lambda: held)
        answer = await client.invoke(str(address), RemotingCommand(11))
        assert (answer.code, server.counters.opened) == (0, 2)
        assert server.connection_count == 2, "the old connection has an answer to bring"
        held[0].fill(held[0].request.answer(0))
        assert (await slow).code == 0
        await until(lambda: server.connection_count == 1)


async def test_a_server_that_says_it_twice_is_believed() -> None:
    router = Router()
    router.register(ECHO, lambda _, command: command.answer(1500, "please go away"))
    async with serving(router) as (server, address), RemotingClient() as client:
        with pytest.raises(GoAway):
            await client.call(str(address), ASK)
        assert next(router.routes()).requests == 2
        assert server.counters.opened == 2


async def test_a_restart_behind_one_address_is_survived() -> None:
    first = RemotingServer(offset_router(1))
    address = await first.listen(LOCALHOST, 0)
    async with RemotingClient() as client:
        assert (await client.call(str(address), ASK)).header.offset == 1
        await first.stop()
        async with RemotingServer(offset_router(2)) as second:
            await second.listen(*address)
            assert (await client.call(str(address), ASK)).header.offset == 2
