"""The VIP port, who forbids a pull, registration again and again, and clients that fall silent."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.broker.broker import Broker
from skyrocket.broker.clients.feature import ClientsFeature
from skyrocket.broker.registration.feature import RegistrationFeature
from skyrocket.broker.state.connected_clients import Member
from skyrocket.broker.state.topics import TopicTable
from skyrocket.config.sections import BrokerConfig
from skyrocket.model.permission import PERM_WRITE
from skyrocket.protocol.bodies.heartbeat import ConsumerData, Heartbeat
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import NoPermission, TopicNotExist
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.protocol.requests.pulling import LitePullMessage, PullMessage
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.exchange import command_of
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import NOT_ON_VIP_PORT
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import (
    GROUP,
    SMALL,
    TOPIC,
    RunningBroker,
    message,
    pull_request,
    running_broker,
)
from tests.cluster.namesrv import name_server_fixture
from tests.ports import free_port
from tests.waiting import until

# ── the VIP port ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_vip_port_serves_sends_and_heartbeats_but_nothing_that_is_held(tmp_path: Path) -> None:
    port = free_port()
    async with running_broker(tmp_path, listen_port=port) as given:
        vip = f"127.0.0.1:{port - 2}"
        assert (await given.client.call(vip, message(), b"over the VIP port")).header.queue_offset == 0
        await given.client.call(vip, HeartBeat(), Heartbeat("one").encode())
        for code in sorted(NOT_ON_VIP_PORT):
            refused = await given.client.invoke(vip, RemotingCommand(code, ext_fields={}))
            assert (refused.code, refused.remark) == (3, f" request type {code} not supported")
        assert (await given.pull()).code == 0


@pytest.mark.requirement("C079")
async def test_a_message_without_a_queue_goes_to_any_of_its_topic(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        queues = {(await given.send(queue_id=-1)).queue_id for _ in range(60)}
        assert queues == set(range(4))


# ── who forbids a pull ───────────────────────────────────────────────────────────────────────────────────────────────


def subscribed(request: PullMessage) -> PullMessage:
    """The same without a subscription of its own: that of the heartbeat counts."""
    return replace(request, sys_flag=0)


async def beat(given: RunningBroker, model: str = "CLUSTERING") -> None:
    data = ConsumerData(GROUP, "CONSUME_PASSIVELY", model, "CONSUME_FROM_LAST_OFFSET", (SubscriptionData(TOPIC),))
    await given.client.call(given.address, HeartBeat(), Heartbeat("one", (), (data,)).encode())


def no_reading(topics: TopicTable) -> None:
    topic = topics.find(TOPIC)
    assert topic is not None
    topics.update(replace(topic, permission=PERM_WRITE))


async def test_an_answer_says_who_forbids_the_pull(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send()
        await beat(given)
        broker = given.broker

        async def refusal(forbid: Callable[[], None], allow: Callable[[], None]) -> tuple[str | None, str]:
            forbid()
            with pytest.raises(NoPermission) as refused:
                await given.client.call(given.address, subscribed(pull_request()))
            allow()
            await given.client.call(given.address, subscribed(pull_request()))
            fields = refused.value.ext_fields
            assert fields is not None
            return refused.value.remark, fields["forbiddenType"]

        groups = broker.tables.groups
        group, topic = groups.groups[GROUP], broker.tables.topics.topics[TOPIC]
        assert await refusal(
            lambda: broker.tables.groups.update(replace(group, may_consume=False)),
            lambda: broker.tables.groups.update(group),
        ) == (f"subscription group no permission, {GROUP}", "2")
        assert await refusal(lambda: no_reading(broker.tables.topics), lambda: broker.tables.topics.update(topic)) == (
            f"the topic[{TOPIC}] pulling message is forbidden",
            "3",
        )
        assert await refusal(
            lambda: broker.tables.groups.let_read(GROUP, TOPIC, False),
            lambda: broker.tables.groups.let_read(GROUP, TOPIC, True),
        ) == (f"the consumer group[{GROUP}] is forbidden for topic[{TOPIC}]", "5")
        await beat(given, "BROADCASTING")
        assert await refusal(
            lambda: broker.tables.groups.update(replace(group, may_consume_broadcast=False)),
            lambda: broker.tables.groups.update(group),
        ) == (f"the consumer group[{GROUP}] can not consume by broadcast way", "4")


@pytest.mark.parametrize("enabled", [True, False])
async def test_lite_pulls_are_served_unless_the_broker_forbids_them(tmp_path: Path, enabled: bool) -> None:
    async with running_broker(tmp_path, BrokerConfig(lite_pulls=enabled)) as given:
        await given.send(b"light")
        header = pull_request()
        values = {field.attribute: getattr(header, field.attribute) for field in LitePullMessage.wire_fields}
        answer = await given.client.invoke(given.address, command_of(LitePullMessage(**values)))
        if enabled:
            assert (answer.code, answer.remark) == (0, "FOUND")
            assert b"light" in bytes(answer.body)
        else:
            remark = "the broker[127.0.0.1] for lite pull consumer is forbidden"
            assert (answer.code, answer.remark) == (16, remark)
            assert answer.ext_fields == {"forbiddenType": "1"}
        assert (await given.pull()).code == 0


@pytest.mark.requirement("B047", "C112")
@pytest.mark.parametrize(("enabled", "on_disk", "suggested"), [(True, True, 1), (True, False, 0), (False, True, 0)])
async def test_who_reads_what_is_on_disk_is_sent_to_the_slave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enabled: bool, on_disk: bool, suggested: int
) -> None:
    async with running_broker(tmp_path, BrokerConfig(slave_read=enabled)) as given:
        for _ in range(3):
            await given.send(bytes(1000))
        if on_disk:  # records further from the end of the log than memory reaches
            monkeypatch.setattr(given.broker.store.reader, "_near", 100)
        assert (await given.pull()).header.suggest_which_broker_id == suggested


@pytest.mark.requirement("C113")
@pytest.mark.parametrize(("enabled", "on_disk", "suggested"), [(True, True, 3), (True, False, 2), (False, True, 0)])
async def test_where_to_read_next_is_said_by_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enabled: bool, on_disk: bool, suggested: int
) -> None:
    async with running_broker(tmp_path, BrokerConfig(slave_read=enabled)) as given:
        for _ in range(3):
            await given.send(bytes(1000))
        await given.pull()  # makes the group
        groups = given.broker.tables.groups
        groups.update(replace(groups.groups[GROUP], broker_id=2, broker_id_when_slow=3))
        if on_disk:
            monkeypatch.setattr(given.broker.store.reader, "_near", 100)
        assert (await given.pull()).header.suggest_which_broker_id == suggested


# ── registration and silence ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_broker_tells_a_name_server_that_has_forgotten_it_within_the_period(tmp_path: Path) -> None:
    async with (
        name_server_fixture.running(tmp_path) as (server, address),
        RemotingClient() as client,
        running_broker(tmp_path, BrokerConfig(name_servers=str(address))) as given,
    ):
        given.broker.feature(RegistrationFeature).registration.period_seconds = 0.2
        await given.send()  # a new topic wakes the loop, which then goes on with the short period
        route = GetRouteInfoByTopic(topic=TOPIC)
        await until(lambda: TOPIC in server.table.topics)
        server.table.remove(list(server.table.live))
        with pytest.raises(TopicNotExist):
            await client.call(str(address), route)
        await until(lambda: TOPIC in server.table.topics)
        assert (await client.call(str(address), route)).body


@pytest.mark.requirement("C061")
async def test_every_name_server_hears_of_all_topics_every_30_seconds(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    async with (
        name_server_fixture.running(tmp_path) as (one, first),
        name_server_fixture.running(tmp_path / "two") as (two, second),
        running_broker(tmp_path, BrokerConfig(name_servers=f"{first};{second}")) as given,
    ):
        assert given.broker.feature(RegistrationFeature).registration.period_seconds == 30.0
        given.broker.feature(RegistrationFeature).registration.period_seconds = 0.2
        await given.send()
        for server in (one, two):
            await until(lambda server=server: TOPIC in server.table.topics)  # type: ignore[misc]
            server.table.remove(list(server.table.live))
        for server in (one, two):
            await until(lambda server=server: {TOPIC, "TBW102"} <= set(server.table.topics))  # type: ignore[misc]


async def test_a_client_that_falls_silent_is_forgotten_after_120_seconds(tmp_path: Path) -> None:
    clock, gone = FakeClock(), asyncio.Event()
    async with running_broker(tmp_path, clock=clock) as given:
        quiet = RunningBroker(given.broker, given.broker.identity.address)
        async with quiet.client:
            await quiet.beat("quiet")
            await given.beat("loud")
            assert client_ids(given) == {"quiet", "loud"}
            (connection,) = [m.client.connection for m in members(given) if m.client.client_id == "quiet"]
            connection.on_close(lambda *_: gone.set())
            for _ in range(2):
                clock.advance(seconds=60)
                given.broker.feature(ClientsFeature).clients.expire()
                assert client_ids(given) == {"quiet", "loud"}
                await given.beat("loud")
            clock.advance(seconds=1)
            given.broker.feature(ClientsFeature).clients.expire()
            assert client_ids(given) == {"loud"}
            await asyncio.wait_for(gone.wait(), 60)


def members(given: RunningBroker) -> list[Member[Peer]]:
    group = given.broker.tables.consumers.find_group(GROUP)
    return [] if group is None else list(group.members.values())


def client_ids(given: RunningBroker) -> set[str]:
    return {member.client.client_id for member in members(given)}


async def test_a_connection_without_any_word_is_closed_after_120_seconds(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_broker(tmp_path, clock=clock) as given:
        reader, writer = await asyncio.open_connection("127.0.0.1", given.port)
        await until(lambda: given.broker.parts.server.connection_count == 1)
        clock.advance(seconds=119)
        given.broker.parts.server.sweep()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(), 0.1)
        clock.advance(seconds=1)
        given.broker.parts.server.sweep()
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 60) == b""
        assert given.broker.parts.server.connection_count == 0
        writer.close()


async def test_two_brokers_that_take_any_free_port_do_not_take_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.sample", lambda ports, count: list(ports)[:count])  # chance would have it so
    configs = [BrokerConfig(listen_port=0, bind_address="127.0.0.1", store_root=str(tmp_path / name)) for name in "ab"]
    brokers = [Broker(replace(config, broker_ip="127.0.0.1"), SMALL) for config in configs]
    chosen = [broker.identity.address.port for broker in brokers]
    chosen += [Address.parse(broker.parts.broker_set.ha_address).port for broker in brokers]
    assert len(set(chosen)) == 4
