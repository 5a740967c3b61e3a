"""Questions of tools that only a client can answer, passed on by the broker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from skyrocket.broker.broker import Broker
from skyrocket.broker.clients.feature import ClientsFeature
from skyrocket.format.record import decode_records
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.offsets import ConsumerStatus
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import ConsumeMessageTimeout, SystemFailure
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.protocol.requests.offsets import GetConsumerStatus
from skyrocket.protocol.requests.server_to_client import ConsumeMessageDirectly, GetConsumerRunningInfo
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.exchange import command_of
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from tests.cluster.broker.broker_fixture import GROUP, TOPIC, RunningBroker, heartbeat, running_broker
from tests.waiting import until

ASKED = (
    RequestCode.GET_CONSUMER_RUNNING_INFO,
    RequestCode.CONSUME_MESSAGE_DIRECTLY,
    RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
)


@dataclass
class Consumer:
    """A client that answers what it was told to answer, or nothing."""

    address: str
    answer: RemotingCommand | None

    def __post_init__(self) -> None:
        self.asked: list[RemotingCommand] = []
        router = Router()
        router.register(ASKED, self._answer)
        self.client = RemotingClient(router=router)

    def _answer(self, _: Peer, request: RemotingCommand) -> Outcome:
        self.asked.append(request)
        if self.answer is None:
            return None
        return request.answer(self.answer.code, self.answer.remark, self.answer.ext_fields, self.answer.body)

    async def beat(self, client_id: str, version: int | None = None) -> None:
        command = command_of(HeartBeat(), heartbeat(client_id))
        command.version = command.version if version is None else version
        assert (await self.client.invoke(self.address, command)).code == 0


@asynccontextmanager
async def consumer(given: RunningBroker, answer: RemotingCommand | None) -> AsyncIterator[Consumer]:
    made = Consumer(given.address, answer)
    async with made.client:
        yield made


def hurry(broker: Broker, seconds: float) -> None:
    """Let the broker wait less for clients than ten seconds."""
    broker.feature(ClientsFeature).relay.relay_seconds = broker.feature(ClientsFeature).relay.status_seconds = seconds


# ── one client ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_running_info_is_asked_of_the_client_and_given_back_as_it_is(tmp_path: Path) -> None:
    answer = RemotingCommand(0, remark="not set any response code", body=b'{"properties":{}}')
    async with running_broker(tmp_path) as given, consumer(given, answer) as one:
        await one.beat("one")
        header = GetConsumerRunningInfo(consumer_group=GROUP, client_id="one", jstack_enable=True)
        reply = await given.client.call(given.address, header)
        assert (reply.code, reply.remark, bytes(reply.body)) == (0, answer.remark, answer.body)
        assert one.asked[0].ext_fields == {"consumerGroup": GROUP, "clientId": "one", "jstackEnable": "true"}


async def test_a_refusal_of_the_client_is_given_back_too(tmp_path: Path) -> None:
    answer = RemotingCommand(1, remark="The Consumer Group <Shop> not exist in this consumer")
    async with running_broker(tmp_path) as given, consumer(given, answer) as one:
        await one.beat("one")
        header = GetConsumerRunningInfo(consumer_group=GROUP, client_id="one")
        with pytest.raises(SystemFailure, match="not exist in this consumer"):
            await given.client.call(given.address, header)


async def test_a_client_that_is_gone_old_or_silent_cannot_be_asked(tmp_path: Path) -> None:
    header = GetConsumerRunningInfo(consumer_group=GROUP, client_id="one")
    async with running_broker(tmp_path) as given:
        with pytest.raises(SystemFailure, match="The Consumer <Shop> <one> not online"):
            await given.client.call(given.address, header)
        async with consumer(given, None) as one:
            await one.beat("one", version=61)
            with pytest.raises(SystemFailure) as refused:
                await given.client.call(given.address, header)
            assert refused.value.remark == (
                "The Consumer <one> Version <61> too low to finish, please upgrade it to V3_1_8_SNAPSHOT"
            )
        async with consumer(given, None) as one:
            await one.beat("one")
            hurry(given.broker, 0.1)
            with pytest.raises(ConsumeMessageTimeout, match="consumer <Shop> <one> Timeout: "):
                await given.client.call(given.address, header)
            hurry(given.broker, 10.0)
            asking = asyncio.ensure_future(given.client.call(given.address, header))
            await until(lambda: len(one.asked) == 2)
            await one.client.close()
            with pytest.raises(SystemFailure, match="invoke consumer <Shop> <one> Exception: "):
                await asking


async def test_a_client_consumes_the_message_that_a_tool_names(tmp_path: Path) -> None:
    answer = RemotingCommand(0, body=b'{"consumeResult":"CR_SUCCESS"}')
    async with running_broker(tmp_path) as given, consumer(given, answer) as one:
        await given.send(b"first")
        sent = await given.send(b"second")
        await one.beat("one")
        header = ConsumeMessageDirectly(consumer_group=GROUP, client_id="one", msg_id=sent.msg_id, topic=TOPIC)
        reply = await given.client.call(given.address, header)
        assert bytes(reply.body) == answer.body
        asked = one.asked[0]
        assert asked.ext_fields == {
            "consumerGroup": GROUP,
            "clientId": "one",
            "msgId": sent.msg_id,
            "topic": TOPIC,
            "brokerName": "broker-a",
            "topicSysFlag": "0",
            "groupSysFlag": "0",
        }
        (record,) = decode_records(asked.body)
        assert (record.body, record.queue_offset) == (b"second", 1)


@pytest.mark.parametrize(
    ("message_id", "remark"),
    [
        ("7F000001000000000000000000FFFFFF", "can not find message by the offset, 16777215"),
        ("nonsense", "msgId 'nonsense' is not an offset message id"),
    ],
)
async def test_a_message_that_is_not_there_is_not_consumed(tmp_path: Path, message_id: str, remark: str) -> None:
    async with running_broker(tmp_path) as given, consumer(given, RemotingCommand(0)) as one:
        await one.beat("one")
        header = ConsumeMessageDirectly(consumer_group=GROUP, client_id="one", msg_id=message_id, topic=TOPIC)
        with pytest.raises(SystemFailure, match=remark):
            await given.client.call(given.address, header)
        assert one.asked == []


# ── all members ──────────────────────────────────────────────────────────────────────────────────────────────────────


def offsets_answer(queue_id: int, offset: int) -> RemotingCommand:
    status = ConsumerStatus(by_queue={MessageQueue(TOPIC, "broker-a", queue_id): offset})
    return RemotingCommand(0, body=status.encode())


async def status(given: RunningBroker, client_id: str | None = None) -> dict[str, dict[MessageQueue, int]]:
    header = GetConsumerStatus(topic=TOPIC, group=GROUP, client_address=client_id)
    body = ConsumerStatus.decode((await given.client.call(given.address, header)).body)
    return {client: dict(offsets) for client, offsets in body.by_client.items()}


async def test_the_offsets_of_all_members_are_one_table(tmp_path: Path) -> None:
    async with (
        running_broker(tmp_path) as given,
        consumer(given, offsets_answer(0, 5)) as one,
        consumer(given, offsets_answer(1, 7)) as two,
        consumer(given, None) as silent,
    ):
        for client_id, client in (("one", one), ("two", two), ("silent", silent)):
            await client.beat(client_id)
        hurry(given.broker, 0.2)
        first, second = MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-a", 1)
        assert await status(given) == {"one": {first: 5}, "two": {second: 7}}
        assert one.asked[0].ext_fields == {"topic": TOPIC, "group": GROUP}
        assert await status(given, "two") == {"two": {second: 7}}
        assert len(one.asked) == 1


async def test_members_must_be_there_and_understand_the_question(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given, consumer(given, None) as one:
        with pytest.raises(SystemFailure, match=r"No Any Consumer online in the consumer group: \[Shop\]"):
            await status(given)
        await one.beat("one", version=27)
        with pytest.raises(SystemFailure, match=r"the client does not support this feature\. version=27"):
            await status(given)
