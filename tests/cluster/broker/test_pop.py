"""Pop through real sockets: pop, acknowledge, wait, revive, restart, assignments; and captured conversations."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.broker.pop.feature import PopFeature
from skyrocket.broker.pop.pop_reader import as_message_of
from skyrocket.clock import SystemClock
from skyrocket.fastjson import loads
from skyrocket.format.properties import encode_properties
from skyrocket.format.record import decode_record, decode_records, encode_record
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.assignment import Assignment, AssignmentQuery, RequestMode, RequestModeTable
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import GroupNotExist, NoPermission, TopicNotExist
from skyrocket.protocol.requests.pop import (
    GetAllMessageRequestMode,
    Notification,
    PopMessage,
    PopMessageAnswer,
    PopRollback,
    QueryAssignment,
    SetMessageRequestMode,
)
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.exchange import Reply
from skyrocket.testing.async_cluster import AsyncLocalCluster
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import GROUP, TOPIC, RunningBroker, message, running_broker
from tests.cluster.broker.broker_replay import exchanges
from tests.cluster.namesrv.name_server_fixture import RawConnection
from tests.cluster.namesrv.name_server_replay import Exchange
from tests.golden_wire import capture
from tests.unit.broker.pop.pop_world import Popped, popped_messages
from tests.waiting import until

POP_CODES = frozenset({0, 209, 210})


async def pop(given: RunningBroker, **changes: Any) -> Reply[PopMessageAnswer]:
    fields: dict[str, Any] = {
        "consumer_group": GROUP,
        "topic": TOPIC,
        "queue_id": -1,
        "max_msg_nums": 32,
        "invisible_time": 60_000,
        "poll_time": 0,
        "init_mode": 0,
    }
    request = PopMessage(**(fields | changes))
    seconds = request.poll_time / 1000 + 5
    return await given.client.call(given.address, request, accepted=POP_CODES, timeout_seconds=seconds)


def messages(reply: Reply[PopMessageAnswer]) -> list[Popped]:
    return popped_messages(bytes(reply.body), reply.header)


async def ack(given: RunningBroker, popped: Popped) -> None:
    await given.client.call(given.address, popped.acknowledgement())


async def test_what_nobody_acknowledges_comes_again_and_what_is_acknowledged_does_not(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        for body in (b"one", b"two"):
            await given.send(body)
        one, two = messages(await pop(given, invisible_time=3000))
        await ack(given, one)
        again = messages(await pop(given, poll_time=30_000))
        assert [each.body for each in again] == [b"two"]
        assert again[0].message.reconsume_times == 1
        assert again[0].message.properties["1ST_POP_TIME"] == str(two.receipt.pop_time)
        await ack(given, again[0])
        page = given.broker.feature(PopFeature).metrics()
        revived = next(metric for metric in page if metric.name == "rocketmq_pop_revive_retry_messages_total")
        assert "1" in str(revived)


async def test_a_pop_that_waits_is_answered_by_a_message(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"first")
        await pop(given)
        waiting = asyncio.ensure_future(pop(given, poll_time=10_000))
        await until(lambda: given.broker.feature(PopFeature).polling.pops.held_count == 1)
        await given.send(b"second", queue_id=3)
        assert [each.body for each in messages(await waiting)] == [b"second"]


async def test_a_pop_that_waits_in_vain_hears_so_and_so_does_one_of_a_broker_that_stops(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"first")
        await pop(given)
        reply = await pop(given, poll_time=300)
        assert (reply.code, reply.remark) == (210, "NO_MESSAGE_IN_QUEUE")
        assert reply.header.msg_offset_info == ""
        waiting = asyncio.ensure_future(pop(given, poll_time=20_000))
        await until(lambda: given.broker.feature(PopFeature).polling.pops.held_count == 1)
        await given.broker.stop()
        assert (await waiting).code == 210


async def test_pops_that_wait_are_refused_as_soon_as_the_broker_may_not_be_read(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"first")
        await pop(given)
        waiting = asyncio.ensure_future(pop(given, poll_time=20_000))
        await until(lambda: given.broker.feature(PopFeature).polling.pops.held_count == 1)
        change = RemotingCommand(RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerPermission=2\n")
        assert (await given.client.invoke(given.address, change)).code == 0
        with pytest.raises(NoPermission, match="pop message is forbidden"):
            await waiting


async def test_a_waiting_pop_whose_connection_is_lost_takes_nothing(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"first")
        await pop(given)
        connection = await RawConnection.to(given.broker.identity.address)
        request = PopMessage(
            consumer_group=GROUP,
            topic=TOPIC,
            queue_id=-1,
            max_msg_nums=32,
            invisible_time=60_000,
            poll_time=20_000,
        )
        connection.send(RemotingCommand(request.code, opaque=7, ext_fields=request.ext_fields()))
        await until(lambda: given.broker.feature(PopFeature).polling.pops.held_count == 1)
        connection.close()
        await until(lambda: given.broker.feature(PopFeature).polling.pops.held_count == 0)
        await given.send(b"second")
        assert [each.body for each in messages(await pop(given))] == [b"second"]


async def test_pops_and_ordered_batches_survive_a_restart(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        for body in (b"one", b"two"):
            await given.send(body)
        await pop(given, max_msg_nums=1, invisible_time=7000)
        ordered = messages(await pop(given, order=True, consumer_group="Ordered"))
        assert len(ordered) == 2
    async with running_broker(tmp_path) as given:
        assert messages(await pop(given, order=True, consumer_group="Ordered")) == []
        assert [each.body for each in messages(await pop(given))] == [b"two"]
        assert [each.body for each in messages(await pop(given, poll_time=30_000))] == [b"one"]


async def test_a_day_of_invisible_time_passes_when_the_clock_is_moved() -> None:
    """Messages live by the broker's clock, the patience of clients by the clock of their own machines."""

    async with AsyncLocalCluster() as cluster, RemotingClient() as client:
        await cluster.create_topic(TOPIC)
        (broker,) = cluster.broker_addresses.values()
        await client.call(broker, message(), b"one")
        request = PopMessage(
            consumer_group=GROUP,
            topic=TOPIC,
            queue_id=-1,
            max_msg_nums=32,
            invisible_time=24 * 3_600_000,
            poll_time=0,
            born_time=SystemClock().now_ms(),
        )
        assert len(messages(await client.call(broker, request, accepted=POP_CODES))) == 1
        await cluster.advance(hours=23)
        later = replace(request, born_time=SystemClock().now_ms())
        assert messages(await client.call(broker, later, accepted=POP_CODES)) == []
        await cluster.advance(hours=1.1)
        later = replace(request, born_time=SystemClock().now_ms())
        assert len(messages(await client.call(broker, later, accepted=POP_CODES))) == 1


async def test_notifications_tell_of_messages(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"one")
        await pop(given)
        request = Notification(consumer_group=GROUP, topic=TOPIC, queue_id=-1, poll_time=10_000, born_time=0)
        waiting = asyncio.ensure_future(given.client.call(given.address, request, timeout_seconds=15))
        await until(lambda: given.broker.feature(PopFeature).polling.notifications.held_count == 1)
        await given.send(b"two")
        assert (await waiting).header.has_msg


# ── who consumes what ────────────────────────────────────────────────────────────────────────────────────────────────


def query(group: str = GROUP, topic: str = TOPIC, client_id: str = "one", strategy: str = "AVG") -> bytes:
    return AssignmentQuery(
        topic=topic, group=group, client_id=client_id, strategy=strategy, message_model="CLUSTERING"
    ).encode()


async def test_the_broker_shares_queues_out_to_be_pulled_or_popped(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"x")
        await given.beat("one")

        async def assigned(body: bytes) -> Any:
            return Assignment.decode((await given.client.call(given.address, QueryAssignment(), body)).body).queues

        pulled = await assigned(query())
        assert [each.queue.queue_id for each in pulled] == [0, 1, 2, 3]
        assert {each.mode for each in pulled} == {"PULL"}
        mode = RequestMode(topic=TOPIC, group=GROUP, mode="POP", pop_share_queues=8)
        await given.client.call(given.address, SetMessageRequestMode(), mode.encode())
        (popped,) = await assigned(query())
        assert (popped.queue, popped.mode) == (MessageQueue(TOPIC, "broker-a", -1), "POP")
        assert await assigned(query(strategy="NOBODY_KNOWS_IT")) is None
        assert await assigned(query(topic="Nothing")) is None
        assert await assigned(query(group="Nobody")) is None
        table = await given.client.call(given.address, GetAllMessageRequestMode())
        assert RequestModeTable.decode(table.body).modes[TOPIC][GROUP].mode == "POP"
        assert (await given.client.call(given.address, PopRollback())).code == 0
    async with running_broker(tmp_path) as given:
        await given.beat("one")
        assert given.broker.feature(PopFeature).modes.find(TOPIC, GROUP) is not None


@pytest.mark.parametrize(
    ("topic", "group", "error", "remark"),
    [
        (f"%RETRY%{GROUP}", GROUP, NoPermission, "retry topic is not allowed to set mode"),
        ("Nothing", GROUP, TopicNotExist, "topic[Nothing] not exist"),
        (TOPIC, "no such name!", GroupNotExist, "subscription group does not exist"),
    ],
)
async def test_a_mode_is_set_only_for_what_exists(
    tmp_path: Path, topic: str, group: str, error: type[Exception], remark: str
) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"x")
        await given.beat("one")
        body = RequestMode(topic=topic, group=group, mode="POP", pop_share_queues=0).encode()
        with pytest.raises(error) as refused:
            await given.client.call(given.address, SetMessageRequestMode(), body)
        assert str(refused.value) == remark


async def test_a_mode_can_be_set_before_the_group_has_come(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"x")
        body = RequestMode(topic=TOPIC, group="Later", mode="POP", pop_share_queues=0).encode()
        await given.client.call(given.address, SetMessageRequestMode(), body)
        assert given.broker.tables.groups.find("Later") is not None
        mode = given.broker.feature(PopFeature).modes.find(TOPIC, "Later")
        assert mode is not None
        assert mode.mode == "POP"


# ── captured conversations ───────────────────────────────────────────────────────────────────────────────────────────

REPLAYED = frozenset(
    {
        RequestCode.HEART_BEAT,
        RequestCode.POP_MESSAGE,
        RequestCode.ACK_MESSAGE,
        RequestCode.BATCH_ACK_MESSAGE,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        RequestCode.PEEK_MESSAGE,
        RequestCode.NOTIFICATION,
        RequestCode.SET_MESSAGE_REQUEST_MODE,
        RequestCode.QUERY_ASSIGNMENT,
        3442,  # what a pop's code becomes in two bytes
    }
)
# What must stand in a field, whatever the numbers are.
_SHAPES = {
    "startOffsetInfo": r"([012] \d+ \d+(;[012] \d+ \d+)*)?",
    "msgOffsetInfo": r"([012] \d+ \d+(,\d+)*(;[012] \d+ \d+(,\d+)*)*)?",
    "orderCountInfo": r"([012] (\d+|qo\d+%\d+) \d+(;[012] (\d+|qo\d+%\d+) \d+)*)?",
    "hasMsg": "true|false",
    "pollingFull": "true|false",
}


def born_ms(exchange: Exchange) -> int:
    """When the request was made, as far as it or its answer says so."""
    answer = exchange.answer.header.get("extFields") if exchange.answer is not None else None
    return int(exchange.fields.get("bornTime", 0)) or int((answer or {}).get("popTime", 0))


async def prepared(given: RunningBroker, conversation: list[Exchange]) -> None:
    """Topics, groups and messages that the answers presuppose; more messages than the real broker had."""
    unknown = {exchange.fields.get("topic") for exchange in conversation if exchange.answer_code == 17}
    for exchange in conversation:
        named: Any = loads(exchange.request.body) if exchange.request.body else exchange.fields
        group = named.get("consumerGroup")
        if group:
            given.broker.tables.groups.find_or_create(group)
        topics = {named.get("topic"), *(ack["t"] for ack in named.get("acks", ()))} - {None} - unknown
        for name in topics:
            if given.broker.tables.topics.find(name) is None:
                config = given.broker.tables.topics.ensure(name, 1 if name.startswith("%RETRY%") else 4)
                for queue_id in range(config.write_queues):
                    for number in range(24):
                        await given.send(b"%d" % number, topic=name, queue_id=queue_id)


@pytest.mark.parametrize(
    "name",
    [
        "java54-pop-api.jsonl",
        "java54bin-pop-api.jsonl",
        "java54-pop-push.jsonl.gz",
        "badinput54-pop.jsonl",
        "grpc54-proxy-remoting.jsonl.gz",
    ],
)
async def test_captured_pops_are_answered_as_by_a_real_broker(name: str, tmp_path: Path) -> None:
    async def main() -> int:
        clock = FakeClock()
        compared = 0
        async with running_broker(tmp_path, clock=clock) as given:
            conversation = [each for each in exchanges(name, REPLAYED) if each.answer is not None]
            await prepared(given, conversation)
            connections: dict[int, RawConnection] = {}
            popped: set[tuple[str, str, str]] = set()
            began = min((born for each in conversation if (born := born_ms(each))), default=clock.now_ms())
            clock.set(began)
            for exchange in conversation:
                if exchange.answer_code == 210 and exchange.fields.get("pollTime", "0") != "0":
                    continue  # it waited, and in vain: ours has more messages
                if exchange.answer_code == 0 and exchange.fields.get("exp", "*") != "*":
                    continue  # ours have no tags
                if exchange.answer_code == 0 and exchange.code == RequestCode.POP_MESSAGE:
                    place = (exchange.fields["consumerGroup"], exchange.fields["topic"], exchange.fields["queueId"])
                    if place in popped:
                        continue  # acknowledgements that follow have not our receipts: it may find nothing
                    popped.add(place)
                if born := born_ms(exchange):
                    clock.set(born + (60_000 if exchange.answer_code == 210 else 5))
                number = exchange.request.connection
                if number not in connections:
                    connections[number] = await RawConnection.to(given.broker.identity.address)
                answer = await connections[number].ask(exchange.request.raw)
                while not answer.is_response:
                    answer = await connections[number].receive()
                compare(exchange, answer)
                compared += 1
            for connection in connections.values():
                connection.close()
        return compared

    assert await main() > 0


def compare(exchange: Exchange, answer: RemotingCommand) -> None:
    assert exchange.answer is not None
    theirs = exchange.answer.header
    about = f"{exchange.request}: {answer}"
    if theirs.get("remark") == "java.lang.NullPointerException":
        assert answer.code == ResponseCode.SYSTEM_ERROR, about
        return
    assert answer.code == theirs["code"], about
    if answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED:
        assert (answer.remark or "").startswith(theirs["remark"]), about  # ours goes on with what is wrong and where
    else:
        assert _masked(answer.remark) == _masked(theirs.get("remark")), about
    expected: Mapping[str, str] | None = theirs.get("extFields")
    assert (None if answer.ext_fields is None else list(answer.ext_fields)) == (
        None if expected is None else list(expected)
    ), about
    for field, value in (answer.ext_fields or {}).items():
        shape = _SHAPES.get(field)
        if shape is not None:
            assert re.fullmatch(shape, value), about
            assert re.fullmatch(shape, (expected or {})[field]), f"the shape is wrong: {expected}"
    if exchange.code == RequestCode.QUERY_ASSIGNMENT:
        assert loads(bytes(answer.body)) == loads(exchange.answer.body), about


def _masked(remark: str | None) -> str | None:
    return None if remark is None else re.sub(r"127\.0\.0\.1(:\d+)?|See https?://\S+", "*", remark)


def test_messages_of_the_retry_topic_are_sent_as_a_real_broker_sends_them() -> None:
    """The record that a real broker made of one of its retry topic, and ours of the same."""
    checked = 0
    for frame in capture("java54-pop-api.jsonl"):
        info = (frame.header.get("extFields") or {}).get("msgOffsetInfo", "")
        if not info.startswith("1 "):
            continue
        for sent in decode_records(frame.body):
            properties = dict(sent.properties)
            receipt = properties.pop("POP_CK")
            kept = replace(sent, topic="%RETRY%CG_popapi_TopicPop2")
            stored = encode_record(kept, encode_properties(properties))
            ours = decode_record(as_message_of("TopicPop2", memoryview(stored), receipt))
            assert ours == sent
            checked += 1
    assert checked == 3
