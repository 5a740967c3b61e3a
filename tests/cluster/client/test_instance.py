"""The shared core: what every request carries, what brokers may ask, whom it asks."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.core.errors import BrokerAbsent, SendTimeout
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.members import TransactionCheck
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.server_requests import reset_table
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.producer.producer import Producer
from skyrocket.client.producer.producer_settings import ProducerSettings
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.codes import LanguageCode, RequestCode, ResponseCode
from skyrocket.protocol.command import ONEWAY_FLAG, RemotingCommand
from skyrocket.protocol.errors import MalformedBody
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.answers import LaterAnswer
from tests.cluster.client.inside import instance_of
from tests.cluster.servers import cluster
from tests.waiting import until


class Broker:
    """What a handler sees of the one who asks."""

    remote_address = Address("10.0.0.1", 10911)


async def test_every_request_says_python_and_is_signed_last() -> None:
    seen: list[dict[str, str] | None] = []

    def sign(command: RemotingCommand) -> None:
        seen.append(dict(command.ext_fields or {}))

    instance = ClientInstance(ClientSettings("127.0.0.1:1", sign=sign, namespace_v2="ns"), "id")
    command = RemotingCommand(34)
    instance.complete("address", command)
    assert command.language is LanguageCode.PYTHON
    assert seen == [{"nsd": "true", "ns": "ns"}]
    plain = ClientInstance(ClientSettings("127.0.0.1:1"), "id")
    command = RemotingCommand(34)
    plain.complete("address", command)
    assert (command.language, command.ext_fields) == (LanguageCode.PYTHON, None)


async def test_signatures_reach_the_broker_with_every_send(tmp_path: Path) -> None:
    signed: set[int] = set()

    def sign(command: RemotingCommand) -> None:
        signed.add(command.code)

    async with cluster(tmp_path) as given:
        client = ClientSettings(given.names, sign=sign)
        async with Producer("Shop", client=client) as producer:
            await producer.send(Message("Orders", b"x"))
            await producer.send(Message("Orders", b"x"))
            await producer.send_oneway(Message("Orders", b"x"))
            await producer.send_batch([Message("Orders", b"x")])
        assert signed == {105, 310, 320, 35}


async def test_a_transaction_check_reaches_the_producer_of_its_group(tmp_path: Path) -> None:
    asked: list[tuple[bytes, str, str | None]] = []

    class Checked(Producer):
        async def check_transaction(self, message: ReceivedMessage, question: TransactionCheck) -> None:
            asked.append((message.body, question.address, question.header.transaction_id))

    async with cluster(tmp_path) as given, Checked("Shop", given.names) as producer:
        receipt = await producer.send(Message("Orders", b"half"))
        store = given.brokers["broker-a"].store
        record = b"".join(store.get("Orders", receipt.queue.queue_id, 0, 1).slices)
        assert b"UNIQ_KEY" in record
        router = instance_of(producer).router
        fields = {"tranStateTableOffset": "0", "commitLogOffset": "0", "transactionId": "T"}
        request = RemotingCommand(RequestCode.CHECK_TRANSACTION_STATE, 1, ONEWAY_FLAG, fields, record)
        broker: Any = Broker()
        assert router.handle(broker, request) is None
        await asyncio.sleep(0.01)
        assert asked == []  # the message names no producer group
        with_group = _with_property(record, b"PGROUP\x01Shop\x02")
        request = RemotingCommand(RequestCode.CHECK_TRANSACTION_STATE, 1, ONEWAY_FLAG, fields, with_group)
        assert router.handle(broker, request) is None
        await until(lambda: asked == [(b"half", "10.0.0.1:10911", "T")])


def _with_property(record: bytes, added: bytes) -> bytes:
    """The same record with one more property."""
    at = record.rindex(b"UNIQ_KEY\x01") if record.count(b"UNIQ_KEY\x01") == 1 else record.index(b"UNIQ_KEY\x01")
    size = int.from_bytes(record[:4], "big") + len(added)
    length = int.from_bytes(record[at - 2 : at], "big") + len(added)
    return size.to_bytes(4, "big") + record[4 : at - 2] + length.to_bytes(2, "big") + record[at:] + added


@pytest.mark.parametrize(
    "body",
    [
        b'{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"T"}:12}}',
        b'{"offsetTable":[{"brokerName":"b","queueId":1,"topic":"T","offset":12}]}',
    ],
)
def test_resets_are_understood_in_both_forms(body: bytes) -> None:
    assert reset_table(body) == {MessageQueue("T", "b", 1): 12}


def test_a_reset_that_is_none_is_refused() -> None:
    with pytest.raises(MalformedBody):
        reset_table(b"nonsense")


async def test_questions_about_groups_that_are_not_here_are_refused() -> None:
    instance = ClientInstance(ClientSettings("127.0.0.1:1"), "id")
    broker: Any = Broker()
    fields = {"consumerGroup": "G", "clientId": "id", "jstackEnable": "false", "topic": "T", "group": "G"}
    for code in (RequestCode.GET_CONSUMER_RUNNING_INFO, RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT):
        answer = instance.router.handle(broker, RemotingCommand(code, 1, ext_fields=fields))
        assert isinstance(answer, bytes)
        assert b"The Consumer Group <G> not exist in this consumer" in answer
    later = instance.router.handle(
        broker, RemotingCommand(RequestCode.CONSUME_MESSAGE_DIRECTLY, 1, ext_fields=fields, body=b"x")
    )
    assert isinstance(later, LaterAnswer)
    await until(lambda: isinstance(later.frame, bytes))
    unknown = instance.router.handle(broker, RemotingCommand(9999, 1))
    assert isinstance(unknown, bytes)
    assert b'"code":%d' % ResponseCode.REQUEST_CODE_NOT_SUPPORTED in unknown
    notice = {"consumerGroup": "nobody here"}
    assert instance.router.handle(broker, RemotingCommand(40, 1, ONEWAY_FLAG, notice)) is None


async def test_a_group_is_shared_while_one_broker_is_down(tmp_path: Path) -> None:
    async with cluster(tmp_path, "broker-a", "broker-b") as given, Producer("Shop", given.names) as producer:
        for _ in range(8):
            await producer.send(Message("Orders", b"x"))
        await given.brokers["broker-a"].parts.server.stop()  # without goodbye at the name server
        got: list[bytes] = []
        consumer = PushConsumer("Billing", given.names, PushConsumerSettings(shutdown_timeout=1))
        consumer.subscribe("Orders", lambda message: got.append(message.body))
        async with consumer:
            await until(lambda: len(got) >= 4)
            assert {queue.broker_name for queue in consumer.assignment if queue.topic == "Orders"} >= {"broker-b"}


async def test_a_name_server_that_never_answers_costs_no_more_than_the_timeout() -> None:
    kept: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda reader, writer: kept.append(writer), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    settings = ProducerSettings(send_timeout=0.2)
    async with silent, Producer("Shop", f"127.0.0.1:{port}", settings) as producer:
        with pytest.raises(SendTimeout, match="no name server told its route in time; nothing was sent"):
            await producer.send(Message("Orders", b"x"))


def test_a_topic_without_any_broker_address_is_said_so() -> None:
    assert "has no address in the route" in str(BrokerAbsent("(any)", "T", "address"))
