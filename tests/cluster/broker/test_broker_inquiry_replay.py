"""Captured questions of real tools to a real broker, asked of ours: same code, same fields, same remark, same shape."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from skyrocket.broker.statistics.feature import StatisticsFeature
from skyrocket.fastjson import loads
from skyrocket.format.config_files import Topics
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.groups import GroupList
from skyrocket.protocol.bodies.heartbeat import ConsumerData, Heartbeat, ProducerData
from skyrocket.protocol.bodies.statistics import ConsumeStats
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from tests.cluster.broker.broker_fixture import RunningBroker, running_broker
from tests.cluster.broker.broker_replay import exchanges, play
from tests.cluster.namesrv.name_server_replay import Exchange
from tests.golden_wire import CapturedFrame, capture, capture_names

CODES = frozenset(
    {
        RequestCode.GET_BROKER_RUNTIME_INFO,
        RequestCode.GET_TOPIC_STATS_INFO,
        RequestCode.GET_CONSUMER_CONNECTION_LIST,
        RequestCode.GET_PRODUCER_CONNECTION_LIST,
        RequestCode.GET_ALL_PRODUCER_INFO,
        RequestCode.GET_CONSUME_STATS,
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO,
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        RequestCode.QUERY_CONSUME_QUEUE,
        RequestCode.VIEW_BROKER_STATS_DATA,
    }
)
RELAYED = (RequestCode.GET_CONSUMER_RUNNING_INFO, RequestCode.CONSUME_MESSAGE_DIRECTLY)
TOPIC = "TopicTest"
# Members of bodies whose names are data: all their values have one shape.
TABLES = frozenset(
    {"offsetTable", "subscriptionTable", "mqTable", "mqPopTable", "statusTable", "data", "table", "properties"}
)


def conversations() -> list[str]:
    names = (name for name in capture_names() if name.startswith(("admin54-", "badinput54-bkreq")))
    return [name for name in names if exchanges(name, CODES)]


def shape(value: Any, name: str = "") -> Any:
    """The members of a JSON value and their kinds."""
    if isinstance(value, Mapping):
        if name in TABLES:
            return sorted({repr(shape(part)) for part in value.values()})
        return {str(key): shape(part, str(key)) for key, part in value.items()}
    if isinstance(value, list):
        return sorted({repr(shape(part)) for part in value})
    return type(value).__name__


class State:
    """What the real broker had when it was asked, as far as its answers show."""

    def __init__(self, given: RunningBroker, name: str) -> None:
        self.given = given
        self.conversation = exchanges(name, CODES)
        frames = capture(name)
        self.asked_of_client = [
            frame
            for frame in frames
            if frame.peer == "broker->client" and not frame.is_response and frame.header["code"] in RELAYED
        ]
        answers = (frame for frame in frames if frame.peer == "client->broker" and frame.is_response)
        self._answers = {frame.header["opaque"]: frame for frame in answers}
        self.asked: list[RemotingCommand] = []
        router = Router()
        router.register(RELAYED, self._answer)
        self.consumer = RemotingClient(router=router)

    def _answer(self, _: Peer, request: RemotingCommand) -> Outcome:
        """What the real client answered to the same question."""
        captured = self._answers[self.asked_of_client[len(self.asked)].header["opaque"]]
        self.asked.append(request)
        return request.answer(captured.header["code"], captured.header.get("remark"), None, captured.body)

    async def prepare(self) -> None:
        broker, topics = self.given.broker, self.given.broker.tables.topics
        table = {**topics.topics, TOPIC: TopicConfig(TOPIC, 4, 4)}
        topics.replace(Topics(topics.data_version, table))
        for queue_id in range(4):
            for _ in range(5):
                await self.given.send(topic=TOPIC, queue_id=queue_id)
        for exchange in self.conversation:
            if exchange.answer_code == 0:
                await self._make_room_for(exchange)
        broker.feature(StatisticsFeature).sampling.sample()

    async def _make_room_for(self, exchange: Exchange) -> None:
        fields, broker = exchange.fields, self.given.broker
        group = fields.get("consumerGroup") or fields.get("group")
        has_members = (
            exchange.code != RequestCode.GET_CONSUME_STATS or ConsumeStats.decode(exchange.answer_body).offsets
        )
        if group and has_members:
            await self._beat(fields.get("clientId", "client"), group, "PG")
            for queue_id in range(4):
                broker.tables.offsets.commit(group, TOPIC, queue_id, 5)
        elif exchange.code in (RequestCode.GET_PRODUCER_CONNECTION_LIST, RequestCode.GET_ALL_PRODUCER_INFO):
            await self._beat("client", "CG", fields.get("producerGroup", "PG"))
        elif exchange.code == RequestCode.QUERY_TOPIC_CONSUME_BY_WHO:
            for name in GroupList.decode(exchange.answer_body).groups:
                broker.tables.offsets.commit(name, fields["topic"], 0, 0)

    async def _beat(self, client_id: str, group: str, producer_group: str) -> None:
        subscriptions = (SubscriptionData(TOPIC), SubscriptionData(f"%RETRY%{group}"))
        data = ConsumerData(group, "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_FIRST_OFFSET", subscriptions)
        beat = Heartbeat(client_id, (ProducerData(producer_group),), (data,)).encode()
        await self.consumer.call(self.given.address, HeartBeat(), beat)


@asynccontextmanager
async def state_of(folder: Path, name: str) -> AsyncIterator[State]:
    async with running_broker(folder) as given:
        state = State(given, name)
        async with state.consumer:
            await state.prepare()
            yield state


def differences(exchange: Exchange, answer: RemotingCommand) -> list[str]:
    assert exchange.answer is not None
    expected = exchange.answer.header
    fields = expected.get("extFields")
    pairs = [
        ("code", answer.code, expected["code"]),
        (
            "fields",
            None if answer.ext_fields is None else list(answer.ext_fields),
            None if fields is None else list(fields),
        ),
        ("remark", answer.remark, expected.get("remark")),
    ]
    if (
        exchange.code != RequestCode.GET_BROKER_RUNTIME_INFO and exchange.answer.body
    ):  # its keys have a test of their own
        theirs = shape(loads(exchange.answer.body))
        pairs.append(("body", shape(loads(bytes(answer.body))) if answer.body else None, theirs))
    return [f"{exchange.request}: {what} is {ours!r}, not {theirs!r}" for what, ours, theirs in pairs if ours != theirs]


@pytest.mark.parametrize("name", conversations())
async def test_the_broker_answers_as_the_real_one_did(tmp_path: Path, name: str) -> None:
    async with state_of(tmp_path, name) as state:
        answers = await play(state.given.broker, state.conversation)
        assert [line for exchange, answer in answers for line in differences(exchange, answer)] == []
        assert len(state.asked) == len(state.asked_of_client)
        for asked, captured in zip(state.asked, state.asked_of_client, strict=True):
            assert asked.code == captured.header["code"]
            assert _relayed_fields(asked) == captured.header["extFields"]
            assert bool(asked.body) == bool(captured.body_size)


def _relayed_fields(asked: RemotingCommand) -> dict[str, str]:
    assert asked.ext_fields is not None
    return dict(asked.ext_fields)


def test_there_are_conversations_to_replay() -> None:
    codes = {exchange.code for name in conversations() for exchange in exchanges(name, CODES)}
    assert codes == CODES
    relayed: list[CapturedFrame] = [
        frame for name in conversations() for frame in capture(name) if frame.peer == "broker->client"
    ]
    assert {frame.header["code"] for frame in relayed if not frame.is_response} >= set(RELAYED)
