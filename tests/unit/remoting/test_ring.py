"""Peers that bring more than can be handled at once share a turn; others come in between."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from time import monotonic, perf_counter

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import FrameReader
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.inbox import Inbox
from skyrocket.remoting.limits import TurnLimits
from skyrocket.remoting.peer import CloseReason, Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import RemotingServer, ServerSettings
from skyrocket.remoting.turn import Turn
from tests.unit.remoting.peers import LOCALHOST, RawPeer, request
from tests.waiting import until

COUNTED, BODY = 12, b"x" * 200


class Counting:
    """A server that counts requests by peer, for each turn."""

    def __init__(self, limits: TurnLimits, handler_seconds: float = 0.0) -> None:
        self.turns: list[Counter[Peer]] = [Counter()]
        self.order: list[Peer] = []
        self.server: RemotingServer
        self.limits = limits
        self._handler_seconds = handler_seconds

    @property
    def total(self) -> int:
        return sum(turn.total() for turn in self.turns)

    @property
    def most_in_a_turn(self) -> int:
        return max(turn.total() for turn in self.turns)

    def handle(self, peer: Peer, command: RemotingCommand) -> Outcome:
        self.turns[-1][peer] += 1
        self.order.append(peer)
        until_then = perf_counter() + self._handler_seconds
        while perf_counter() < until_then:
            pass
        return command.answer(0)

    @asynccontextmanager
    async def serving(self, settings: ServerSettings | None = None) -> AsyncIterator[Address]:
        router = Router()
        router.register(COUNTED, self.handle)
        async with RemotingServer(router, settings, turn=Turn(self.limits)) as server:
            self.server = server
            server.on_turn_end(lambda: self.turns.append(Counter()))
            yield await server.listen(LOCALHOST, 0)


@asynccontextmanager
async def floods(address: Address, number: int, requests: int) -> AsyncIterator[list[RawPeer]]:
    frames = b"".join(request(COUNTED, opaque, BODY) for opaque in range(requests))
    async with AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(RawPeer.connected(address)) for _ in range(number)]
        for peer in peers:
            peer.send(frames)
        yield peers


async def test_a_turn_takes_a_part_of_a_flood_and_the_rest_of_it_later_in_order() -> None:
    counting = Counting(TurnLimits(requests=32, requests_at_once=4, requests_alone=4))
    async with counting.serving() as address, floods(address, 1, 1000) as (flood,):
        assert [answer.opaque for answer in await flood.commands(1000)] == list(range(1000))
    assert counting.total == 1000
    assert counting.most_in_a_turn <= 32


async def test_turns_are_no_longer_for_many_floods_than_for_one() -> None:
    counting = Counting(TurnLimits(requests=32, requests_at_once=4, requests_alone=4))
    async with counting.serving() as address, floods(address, 20, 300) as peers:
        for flood in peers:
            assert [answer.opaque for answer in await flood.commands(300)] == list(range(300))
    assert counting.total == 20 * 300
    assert counting.most_in_a_turn <= 32


async def test_floods_have_the_same_share_and_who_was_not_reached_comes_first() -> None:
    counting = Counting(TurnLimits(requests=12, requests_at_once=4, requests_alone=4))
    async with counting.serving() as address, floods(address, 10, 300) as peers:
        for flood in peers:
            await flood.commands(300)
    served: Counter[Peer] = Counter()
    for turn in counting.turns:
        served += turn
        if len(served) == 10 and max(served.values()) < 300:
            assert max(served.values()) - min(served.values()) <= 32, "nobody is far ahead, whatever pieces came"


async def test_a_single_request_does_not_wait_for_floods() -> None:
    counting = Counting(TurnLimits(requests=32, requests_at_once=4, requests_alone=4))
    async with counting.serving() as address, RawPeer.connected(address) as honest:
        await honest.asks(request(COUNTED))
        async with floods(address, 20, 500) as peers:
            await peers[0].commands(1)
            for opaque in range(5):
                before = counting.total
                assert (await honest.asks(request(COUNTED, opaque))).opaque == opaque
                # Some turns pass until the test itself has its turn, more where the machine is busy: not all of them.
                assert counting.total - before <= 20 * 500 // 10
            assert counting.total < 20 * 500, "the floods were over before"
            for flood in peers[1:]:
                await flood.commands(500)


async def test_costly_requests_of_many_peers_are_not_all_handled_in_one_turn() -> None:
    counting = Counting(TurnLimits(seconds=0.001, seconds_for_ring=0.001), handler_seconds=0.003)
    async with counting.serving() as address, floods(address, 20, 1) as peers:
        for peer in peers:
            await peer.commands(1)
    assert counting.most_in_a_turn <= 2, "one that came while there was room, one of the ring"


class Waiting:
    """Somebody in the ring who never comes to an end."""

    def take_slice(self, most: int) -> tuple[int, bool]:
        return most, True


async def test_who_made_costly_requests_waits_with_those_who_wait_and_others_do_not() -> None:
    turn = Turn(TurnLimits(requests=4))
    costly, other = (Inbox(FrameReader(), turn, monotonic) for _ in range(2))
    assert costly.at_once(request(COUNTED))
    until_then = perf_counter() + 0.005
    await until(lambda: perf_counter() > until_then)
    costly.handled()
    turn.end()
    assert costly.at_once(request(COUNTED)), "nobody waits: it need not either"
    turn.enter_ring(Waiting())
    turn.end()
    assert costly.at_once(request(COUNTED)) is None
    assert other.at_once(request(COUNTED))
    turn.ring.clear()


async def test_bytes_of_a_turn_are_bounded_too() -> None:
    counting = Counting(TurnLimits(read_size=128 << 10, read_size_for_ring=64 << 10))
    large = request(COUNTED, 1, bytes(60 << 10))
    async with counting.serving() as address, AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(RawPeer.connected(address)) for _ in range(12)]
        for peer in peers:
            peer.send(large)
        for peer in peers:
            assert (await peer.commands(1))[0].opaque == 1
    assert counting.most_in_a_turn <= 4


async def test_what_was_sent_before_the_peer_went_away_is_handled() -> None:
    counting = Counting(TurnLimits(requests=8, requests_at_once=4, requests_alone=4))
    frames = b"".join(request(COUNTED, opaque, BODY, oneway=True) for opaque in range(2000))
    async with counting.serving() as address, RawPeer.connected(address) as peer:
        peer.send(frames)
        await peer.writer.drain()
        peer.writer.write_eof()
        await until(lambda: counting.total == 2000)


async def test_bytes_that_wait_for_their_time_count_for_the_bound_of_all_connections() -> None:
    counting = Counting(TurnLimits(requests=4, requests_at_once=4, requests_alone=4), handler_seconds=0.002)
    settings = ServerSettings(max_unfinished_size=1 << 20)
    async with counting.serving(settings) as address, floods(address, 40, 800) as peers:  # 200 kB each
        closed = counting.server.counters.closed
        await until(lambda: closed[CloseReason.SLOW] > 0)
        assert closed[CloseReason.SLOW] < len(peers), "those within the bound stay"
