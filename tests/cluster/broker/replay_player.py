"""Plays a captured conversation to our broker: the same bytes in the same order over as many connections, and time goes
by as it did then.

    async with playing(folder, name) as player:
        for heard in await player.play(): heard.step is what the real broker said, heard.command what ours said

A step of the broker's is waited for where it stands in the capture; whatever ours says that the real one did not say is
heard at the end, without a step.
"""

import asyncio
import contextlib
import math
import random
import re
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skyrocket.broker.broker import Broker
from skyrocket.broker.delay.feature import DelayFeature
from skyrocket.broker.pull.feature import PullFeature
from skyrocket.broker.statistics.feature import StatisticsFeature
from skyrocket.broker.transactions.feature import TransactionsFeature
from skyrocket.config.sections import BrokerConfig, StoreConfig
from skyrocket.format.record import decode_record
from skyrocket.protocol.bodies.heartbeat import Heartbeat
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import ProtocolError
from skyrocket.protocol.frames import FrameReader, encode
from skyrocket.remoting.addresses import VIP_PORT_DISTANCE, Address
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.conversation import Deed, Step, conversation
from tests.cluster.broker.replay_beginning import (
    REPLIES,
    SENDS,
    Member,
    Stock,
    arrange_tables,
    beginning_of,
    queue_sent_to,
)
from tests.cluster.namesrv.name_server_fixture import RawConnection
from tests.ports import free_port

SMALL: Final = StoreConfig(commit_log_file_size=1 << 20, preallocate_bytes=1 << 16, index_slots=100, index_entries=1000)
_ANSWER_SECONDS: Final = 1.5
_PATIENCE_SECONDS: Final = 4.0  # for what the real broker said: the machine may be busy
_SETTLE_SECONDS: Final = 0.01
_HASTE_SECONDS: Final = 1.0  # a client that hangs up so soon does not wait for answers
PULLS: Final = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
_UNIQUE_KEY: Final = re.compile(rb"UNIQ_KEY\x01([^\x02]+)")
_HALF_PLACE: Final = "commitLogOffset"  # of a half message whose producer is asked, and which it then ends
_NAMES_A_PLACE: Final[dict[int, str]] = {
    RequestCode.VIEW_MESSAGE_BY_ID: "offset",
    RequestCode.CONSUMER_SEND_MSG_BACK: "offset",
    RequestCode.END_TRANSACTION: _HALF_PLACE,
}
_JOINING: Final = 1 << 30
# The settings of the real brokers; what is not named here was as it is by default.
_WITHOUT_FILTER: Final = "java54-sqlfilter-disabled"
_WITHOUT_CREATION: Final = ("java54-missing-topic", "go-missing-topic")


@dataclass(frozen=True)
class Heard:
    """What the real broker said and what ours said: one of them may have said nothing."""

    step: Step | None
    command: RemotingCommand | None
    connection: int
    is_closed: bool = False  # our broker hung up
    request: Step | None = None  # of an answer without a step: what it answers


class Line:
    """One connection, and what came on it that nobody has looked at yet."""

    def __init__(self, number: int, raw: RawConnection) -> None:
        self.number = number
        self.raw = raw
        self.waiting: list[RemotingCommand] = []
        self.is_closed = False
        self.opaques: dict[int, int] = {}  # of what the broker asked: the captured number → ours

    async def listen(self, seconds: float) -> bool:
        """Wait for one more command."""
        if self.is_closed:
            return False
        try:
            self.waiting.append(await self.raw.receive(seconds))
        except TimeoutError:
            return False
        except (ConnectionError, ProtocolError):  # hung up, or alerted in the words of TLS
            self.is_closed = True
            return False
        return True

    def take(self, step: Step) -> RemotingCommand | None:
        """What fits the step."""
        for command in self.waiting:
            if _fits(step, command):
                self.waiting.remove(command)
                return command
        return None


def _fits(step: Step, command: RemotingCommand) -> bool:
    if step.deed is Deed.IS_ANSWERED:
        return command.is_response and command.opaque == int(step.header["opaque"])
    return not command.is_response and command.code == step.header["code"]


class Player:
    """Plays one conversation once."""

    def __init__(self, broker: Broker, clock: FakeClock, name: str) -> None:
        self.broker = broker
        self.clock = clock
        self.steps = conversation(name)
        self.beginning = beginning_of(name, self.steps)
        self.stock = Stock(broker, clock)
        stored = (decode_record(raw).unique_key for raw in self.beginning.records.values())
        sent = (key for step in self.steps for key in _unique_keys(step))
        self.unique_keys = frozenset([*sent, *filter(None, stored)])  # all others are of the broker's making
        self.served = frozenset(route.code for route in broker.parts.server.router.routes() if route.code is not None)
        self._lines: dict[int, Line] = {}
        self._left_out: set[tuple[int, int]] = set()
        self._requests = {
            (step.connection, int(step.header.get("opaque", 0))): step
            for step in self.steps
            if step.deed is Deed.ASKS_BROKER
        }
        self._answers = {
            (step.connection, int(step.request.header["opaque"])): step
            for step in self.steps
            if step.deed is Deed.IS_ANSWERED and step.request is not None
        }

        self._places: dict[int, int] = {}  # of sent messages: where the real broker put them → where ours put them
        self._answers_to_sends = [
            step for step in self._answers.values() if step.code in SENDS and "queueOffset" in step.answer_fields
        ]

    async def prepare(self) -> None:
        """Bring the broker into the state in which the real one was."""
        self.broker.feature(PullFeature).polling.next_check = math.inf  # it looks at its queues when the real one did
        self.stock.lay(self.beginning)
        arrange_tables(self.broker, self.beginning)
        for member in self.beginning.members:
            await self._join(member)
        self.broker.feature(StatisticsFeature).sampling.sample()

    async def _join(self, member: Member) -> None:
        consumers = () if member.consumer is None else (member.consumer,)
        producers = () if member.producer is None else (member.producer,)
        line = await self._line(member.connection, is_vip=False)
        body = Heartbeat(member.client_id, producers, consumers).encode()
        line.raw.send(RemotingCommand(RequestCode.HEART_BEAT, opaque=_JOINING, body=body))
        while await line.listen(_ANSWER_SECONDS) and not line.waiting[-1].is_response:
            pass
        line.waiting.clear()

    async def play(self, left_out: Collection[int]) -> list[Heard]:
        """All steps but requests of codes that are left out, and what belongs to them."""
        heard = []
        for step in self.steps:
            self._let_pass(step)
            line = await self._line(step.connection, step.is_vip)
            match step.deed:
                case Deed.ASKS_BROKER if step.code in left_out or self._met_a_busy_machine(step):
                    self._left_out.add((step.connection, int(step.header.get("opaque", 0))))
                case Deed.ASKS_BROKER | Deed.SENDS_RUBBISH:
                    self._make_place_for(step)
                    line.raw.send(self._moved(step))
                    await self._settle(step, line)
                case Deed.ANSWERS_BROKER:
                    self._answer(step, line)
                    await line.listen(_SETTLE_SECONDS)
                case Deed.IS_ANSWERED if (step.connection, int(step.header["opaque"])) in self._left_out:
                    pass
                case Deed.IS_ANSWERED | Deed.IS_ASKED:
                    heard.append(await self._hear(step, line))
                case Deed.HANGS_UP:
                    await line.listen(_SETTLE_SECONDS)
                    line.raw.close()
                    await asyncio.sleep(_SETTLE_SECONDS)
                case Deed.IS_CUT_OFF:
                    while await line.listen(_ANSWER_SECONDS):
                        pass
                    heard.append(Heard(step, None, line.number, is_closed=line.is_closed))
        return heard + await self._rest()

    def _let_pass(self, step: Step) -> None:
        """Let as much time pass as passed then; what is due happens."""
        now_ms = self.beginning.began_ms + int(step.seconds * 1000)
        if now_ms > self.clock.now_ms():
            self._advance(now_ms - self.clock.now_ms())

    def _let_go(self, step: Step) -> None:
        """Answer a held pull whose time is over, or whose queue has grown by what it does not want.

        The clock of the capture says so a little earlier or later; and the real broker looked at its queues every 5 s.
        """
        polling = self.broker.feature(PullFeature).polling
        for pull in [pull for pulls in polling.held.values() for pull in pulls]:
            if pull.later.request.opaque != int(step.header["opaque"]):
                continue
            if step.answer_code == ResponseCode.PULL_NOT_FOUND:
                self._advance(max(0, int((pull.deadline - self.clock.monotonic()) * 1000) + 1))
            elif step.answer_code == ResponseCode.PULL_RETRY_IMMEDIATELY:
                polling.next_check = 0.0
                polling.check()
                polling.next_check = math.inf

    def _advance(self, ms: int) -> None:
        self.clock.advance(ms=ms)
        self.broker.feature(PullFeature).polling.check()
        self.broker.feature(DelayFeature).levels.fire_due(self.clock.now_ms())

    def _moved(self, step: Step) -> bytes:
        """A request, byte for byte; one that names a record that ours has elsewhere must name that place."""
        name = _NAMES_A_PLACE.get(step.code) if step.deed is Deed.ASKS_BROKER else None
        place = int(step.fields[name]) if name is not None and name in step.fields else None
        if place is None or name is None or self._places.get(place, place) == place:
            return step.raw
        (request,) = FrameReader().receive(step.raw)
        request.ext_fields = {**(request.ext_fields or {}), name: str(self._places[place])}
        return encode(request)

    def _answer_to(self, step: Step) -> Step | None:
        return self._answers.get((step.connection, int(step.header.get("opaque", 0))))

    def _met_a_busy_machine(self, step: Step) -> bool:
        """Whether the real broker had no time for a request: that says nothing about the request."""
        answer = self._answer_to(step)
        return answer is not None and str(answer.header.get("remark")).startswith("[TIMEOUT_CLEAN_QUEUE]")

    def _make_place_for(self, step: Step) -> None:
        """Let a sent message come to the place where the real broker put it."""
        if step.deed is not Deed.ASKS_BROKER or step.code not in SENDS:
            return
        answer = self._answer_to(step)
        fields = answer.answer_fields if answer is not None else {}
        if answer is None or "queueOffset" not in fields:
            return
        queue, place = queue_sent_to(answer), _place(answer)
        if all(_place(other) >= place for other in self._answers_to_sends if other.request_line > step.line):
            self.stock.lengthen(queue, int(fields["queueOffset"]))
            self.stock.fill_to(place)  # else it was overtaken by one that came later
        if queue[1] != queue_sent_to(step)[1]:
            _throw_dice(queue[1])

    async def _settle(self, step: Step, line: Line) -> None:
        """Give a request time to take effect."""
        if step.deed is Deed.SENDS_RUBBISH or step.is_oneway:
            await line.listen(_SETTLE_SECONDS)
        elif step.code in SENDS and self._answer_to(step) is not None:  # so that the next has its place behind it
            await line.listen(_ANSWER_SECONDS if step.code not in REPLIES else _SETTLE_SECONDS)

    def _answer(self, step: Step, line: Line) -> None:
        assert step.frame is not None
        opaque = line.opaques.get(int(step.header["opaque"]))
        if opaque is None:  # an answer to what nobody asked
            line.raw.send(step.raw)
            return
        header = step.header
        answer = RemotingCommand(
            header["code"], opaque, header["flag"], header.get("extFields"), step.body, header.get("remark")
        )
        line.raw.send(answer)

    async def _hear(self, step: Step, line: Line) -> Heard:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PATIENCE_SECONDS
        if step.deed is Deed.IS_ANSWERED and step.code in PULLS:
            self._let_go(step)
        elif step.deed is Deed.IS_ASKED and step.code == RequestCode.CHECK_TRANSACTION_STATE:
            self.broker.feature(TransactionsFeature).check.check_once(self.clock.now_ms())
        while (command := line.take(step)) is None:
            left = deadline - loop.time()
            if line.is_closed or left <= 0:
                return Heard(step, None, line.number, is_closed=line.is_closed)
            await line.listen(left)
        if step.deed is Deed.IS_ASKED:
            line.opaques[int(step.header["opaque"])] = command.opaque
            asked, own = step.answer_fields.get(_HALF_PLACE), (command.ext_fields or {}).get(_HALF_PLACE)
            if asked is not None and own is not None:
                self._places[int(asked)] = int(own)
        elif step.code in SENDS and "msgId" in (command.ext_fields or {}) and "msgId" in step.answer_fields:
            self._places.update(zip(places(step.answer_fields), places(command.ext_fields or {}), strict=False))
        return Heard(step, command, line.number)

    async def _rest(self) -> list[Heard]:
        heard = []
        for number, line in self._lines.items():
            await line.listen(_SETTLE_SECONDS)
            for command in line.waiting:
                if self._was_cut_short(number, command):
                    continue
                request = self._requests.get((number, command.opaque)) if command.is_response else None
                heard.append(Heard(None, command, number, request=request))
            line.waiting.clear()
        return heard

    def _was_cut_short(self, number: int, command: RemotingCommand) -> bool:
        """Whether the capture ends before the real broker could have said it."""
        request = self._requests.get((number, command.opaque))
        if request is None or not command.is_response:
            return False
        if request.code in PULLS and command.code == ResponseCode.PULL_NOT_FOUND:
            return True  # it waited as long as it may: RocketMQ looks every 5 s, ours more often
        later = [step for step in self.steps if step.connection == number and step.line > request.line]
        said = any(step.deed in (Deed.IS_ANSWERED, Deed.IS_ASKED) for step in later)
        hung_up = any(step.deed is Deed.HANGS_UP and step.seconds - request.seconds < _HASTE_SECONDS for step in later)
        return hung_up or not said

    async def _line(self, number: int, is_vip: bool) -> Line:
        if number not in self._lines:
            address = self.broker.identity.address
            port = address.port - VIP_PORT_DISTANCE if is_vip else address.port
            self._lines[number] = Line(number, await RawConnection.to(Address(address.host, port)))
        return self._lines[number]

    def close(self) -> None:
        for line in self._lines.values():
            line.raw.close()


def places(fields: Mapping[str, str]) -> list[int]:
    """The physical offsets that the answer to a send tells."""
    return [int(message_id[-16:], 16) for message_id in fields["msgId"].split(",")]


def _place(answer: Step) -> int:
    return places(answer.answer_fields)[0]


def _throw_dice(queue_id: int) -> None:
    """Let the broker's next choice among four queues be the one that it was then."""
    random.seed(next(seed for seed in range(1000) if random.Random(seed).randrange(4) == queue_id))


def _unique_keys(step: Step) -> Iterator[str]:
    """Unique keys of messages that a client sends."""
    if step.deed is Deed.ASKS_BROKER:
        text = f"{step.fields.get('i', '')}\x02{step.fields.get('properties', '')}\x02"
        yield from (found.decode() for found in _UNIQUE_KEY.findall(text.encode() + step.body))


@contextlib.asynccontextmanager
async def playing(folder: Path, name: str) -> AsyncIterator[Player]:
    """A fresh broker that is as the real one was, and a player of the conversation."""
    may_create = not name.startswith(_WITHOUT_CREATION)
    config = BrokerConfig(
        listen_port=free_port(),
        bind_address="127.0.0.1",
        broker_ip="127.0.0.1",
        broker_name="broker-a",
        store_root=str(folder / "store"),
        auto_create_topic=may_create,
        auto_create_group=may_create,
        property_filter=not name.startswith(_WITHOUT_FILTER),
        recall=True,
        transaction_timeout_ms=6000,
    )
    clock = FakeClock()
    async with Broker(config, SMALL, clock) as broker:
        await broker.start()
        player = Player(broker, clock, name)
        try:
            await player.prepare()
            yield player
        finally:
            player.close()
