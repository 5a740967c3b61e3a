"""A running name server, asked over sockets; and the program around it."""

import asyncio
import re
import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from skyrocket.config.sections import NameServerConfig
from skyrocket.protocol.bodies.registration import body_crc
from skyrocket.protocol.bodies.route import ClusterInfo, TopicRoute
from skyrocket.protocol.bodies.topics import DATA_VERSION
from skyrocket.protocol.codes import Version
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.requests.broker_registration import (
    BrokerHeartbeat,
    NotifyMinBrokerIdChange,
    QueryDataVersion,
    RegisterBroker,
)
from skyrocket.protocol.requests.kv_config import GetNamesrvConfig, PutKvConfig, UpdateNamesrvConfig
from skyrocket.protocol.requests.name_server import GetBrokerClusterInfo
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.remoting.exchange import command_of
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import RemotingServer
from tests.cluster.namesrv.name_server_fixture import RawConnection, running
from tests.cluster.namesrv.name_server_replay import Exchange, comparable_body, conversations, exchanges, prepare
from tests.packed_registrations import encode_compressed
from tests.unit.namesrv.samples import registration


def registering(
    *topics: str, name: str = "broker-a", compressed: bool = False, timeout_ms: int | None = None
) -> RemotingCommand:
    body = registration(*topics)
    data = encode_compressed(body) if compressed else body.encode()
    return command_of(
        RegisterBroker(
            broker_name=name,
            broker_addr=f"{name}:10911",
            cluster_name="DefaultCluster",
            ha_server_addr=f"{name}:10912",
            broker_id=0,
            body_crc32=body_crc(data),
            compressed=compressed,
            heartbeat_timeout_millis=timeout_ms,
        ),
        data,
    )


def asking(topic_name: str) -> RemotingCommand:
    return command_of(GetRouteInfoByTopic(topic=topic_name))


# ── conversations of real peers ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("A039", "C068", "C071")
@pytest.mark.parametrize("name", list(conversations()))
async def test_answers_are_those_of_the_real_name_server(tmp_path: Path, name: str) -> None:
    conversation = exchanges(name)

    async def replay() -> list[tuple[Exchange, RemotingCommand]]:
        answers = []
        connections: dict[int, RawConnection] = {}
        async with running(tmp_path) as (server, address):
            prepare(server, conversation)
            for exchange in conversation:
                number = exchange.request.connection
                if number not in connections:
                    connections[number] = await RawConnection.to(address)
                if exchange.answer is None:
                    connections[number].send(exchange.request.raw)
                    await asyncio.sleep(0.01)
                else:
                    answers.append((exchange, await connections[number].ask(exchange.request.raw)))
        return answers

    for exchange, answer in await replay():
        assert exchange.answer is not None
        expected, where = exchange.answer.header, str(exchange.request)
        is_4_9 = expected["version"] == Version.V4_9_7
        assert answer.code == expected["code"], where
        assert answer.opaque == expected["opaque"], where
        if expected["code"] != 1 or not str(expected.get("remark")).startswith("java."):
            assert _remark(answer.remark) == _remark(expected.get("remark")), where
            assert _names(answer.ext_fields) == _names(expected.get("extFields")), where
        ours = comparable_body(exchange.code, bytes(answer.body), is_4_9=is_4_9)
        assert ours == comparable_body(exchange.code, exchange.answer.body, is_4_9=is_4_9), where


def _names(fields: Mapping[str, str] | None) -> list[str] | None:
    return None if fields is None else list(fields)


def _remark(remark: str | None) -> str | None:
    return None if remark is None else re.sub(r"See https?://\S+", "See FAQ", remark)


# ── brokers come and go ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("B015", "C058", "C059", "C069")
@pytest.mark.parametrize("compressed", [False, True])
async def test_a_broker_is_known_while_its_connection_lives(tmp_path: Path, compressed: bool) -> None:
    async with running(tmp_path) as (_, address):
        broker, client = await RawConnection.to(address), await RawConnection.to(address)
        assert (await client.ask(asking("T"))).code == 17
        assert (await broker.ask(registering("T", "U", compressed=compressed))).code == 0
        route: TopicRoute = TopicRoute.decode((await client.ask(asking("T"))).body)
        assert [data.addresses for data in route.brokers] == [{0: "broker-a:10911"}]
        assert [(queues.broker_name, queues.read_queues) for queues in route.queues] == [("broker-a", 4)]
        broker.close()
        while (await client.ask(asking("T"))).code != 17:
            await asyncio.sleep(0.01)
        info = ClusterInfo.decode((await client.ask(command_of(GetBrokerClusterInfo()))).body)
        assert (info.brokers, info.clusters) == ({}, {})


async def test_a_silent_broker_is_forgotten_and_its_connection_closed(tmp_path: Path) -> None:
    async with running(tmp_path, NameServerConfig(scan_interval_ms=20)) as (_, address):
        silent, beating, client = [await RawConnection.to(address) for _ in range(3)]
        await silent.ask(registering("T", "U", name="silent", timeout_ms=2000))
        await beating.ask(registering("T", "U", name="beating", timeout_ms=2000))
        heartbeat = BrokerHeartbeat(cluster_name="DefaultCluster", broker_addr="beating:10911", broker_name="beating")
        assert not await silent.is_closed_within(0.1)
        closing = asyncio.create_task(silent.is_closed_within(60.0))
        while not closing.done():
            await beating.ask(command_of(heartbeat))
            await asyncio.sleep(0.05)
        route = TopicRoute.decode((await client.ask(asking("T"))).body)
        assert [data.broker_name for data in route.brokers] == ["beating"]
        assert closing.result()


async def test_a_broker_asks_whether_its_topics_are_known(tmp_path: Path) -> None:
    query = QueryDataVersion(
        broker_name="broker-a", broker_addr="broker-a:10911", cluster_name="DefaultCluster", broker_id=0
    )

    async def scenario() -> list[RemotingCommand]:
        known, other = (DATA_VERSION.encode(registration(counter=n).table.data_version) for n in (1, 2))
        async with running(tmp_path) as (_, address):
            broker = await RawConnection.to(address)
            answers = [await broker.ask(command_of(query, known))]
            await broker.ask(registering("T", "U"))
            answers += [await broker.ask(command_of(query, known)), await broker.ask(command_of(query, other))]
            return answers

    before, same, changed = await scenario()
    assert [a.ext_fields for a in (before, same, changed)] == [
        {"changed": "true"},
        {"changed": "false"},
        {"changed": "true"},
    ]
    assert before.body == b""
    assert DATA_VERSION.decode(same.body) == DATA_VERSION.decode(changed.body) == registration().table.data_version


@pytest.mark.requirement("B014", "C063")
async def test_name_servers_are_independent(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()

    async def scenario() -> list[int]:
        async with running(tmp_path / "one") as (_, one), running(tmp_path / "two") as (_, two):
            first, second = await RawConnection.to(one), await RawConnection.to(two)
            await first.ask(registering("T", "U"))
            codes = [(await first.ask(asking("T"))).code, (await second.ask(asking("T"))).code]
            await second.ask(registering("T", "U"))
            return [*codes, (await second.ask(asking("T"))).code]

    assert await scenario() == [0, 17, 0]


@pytest.mark.requirement("C062")
async def test_clients_are_told_nothing_that_they_did_not_ask_for(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, address):
        broker, client = await RawConnection.to(address), await RawConnection.to(address)
        await broker.ask(registering("T", "U"))
        assert (await client.ask(asking("T"))).code == 0
        await broker.ask(registering("T", "U", name="broker-b"))
        broker.close()
        with pytest.raises(TimeoutError):
            await client.receive(0.3)
        assert (await client.ask(asking("T"))).code == 17


async def test_ten_thousand_topics_are_registered_and_asked_for(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, address):
        broker, client = await RawConnection.to(address), await RawConnection.to(address)
        names = [f"Topic-{number}" for number in range(10_000)]
        assert (await broker.ask(registering(*names))).code == 0
        for name in names[::20]:
            client.send(asking(name))
        for _ in names[::20]:
            assert (await client.receive()).code == 0


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        pytest.param({}, ["here", "there"], id="everywhere"),
        pytest.param({"__ZONE_MODE": "true", "__ZONE_NAME": "z1"}, ["here"], id="one-zone"),
    ],
)
async def test_a_requester_may_be_kept_to_its_zone(tmp_path: Path, fields: dict[str, str], names: list[str]) -> None:
    async def scenario() -> TopicRoute:
        async with running(tmp_path) as (_, address):
            peer = await RawConnection.to(address)
            for name, zone in (("here", "Z1"), ("there", "Z2")):
                request = registering("T", "U", name=name)
                assert request.ext_fields is not None
                request.ext_fields["__ZONE_NAME"] = zone
                await peer.ask(request)
            question = asking("T")
            assert question.ext_fields is not None
            question.ext_fields.update(fields)
            return TopicRoute.decode((await peer.ask(question)).body)

    assert [data.broker_name for data in (await scenario()).brokers] == names


async def test_members_of_a_broker_name_hear_that_their_master_went(tmp_path: Path) -> None:
    heard: asyncio.Queue[NotifyMinBrokerIdChange] = asyncio.Queue()

    def listen(_: Peer, request: RemotingCommand) -> None:
        heard.put_nowait(NotifyMinBrokerIdChange.from_fields(request.ext_fields))

    async def scenario() -> NotifyMinBrokerIdChange:
        router = Router()
        router.register(NotifyMinBrokerIdChange.code, listen)
        config = NameServerConfig(notify_min_broker_id=True)
        async with RemotingServer(router) as slave, running(tmp_path, config) as (_, address):
            slave_address = str(await slave.listen("127.0.0.1", 0))
            masters, slaves = await RawConnection.to(address), await RawConnection.to(address)
            for connection, broker_id, broker in ((masters, "0", "m:1"), (slaves, "1", slave_address)):
                request = registering("T", "U")
                assert request.ext_fields is not None
                request.ext_fields.update(brokerId=broker_id, brokerAddr=broker, enableActingMaster="true")
                assert (await connection.ask(request)).code == 0
            masters.close()
            return await heard.get()

    told = await scenario()
    assert (told.min_broker_id, told.offline_broker_addr) == (1, "m:1")


# ── KV values and settings ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("C072")
async def test_kv_values_outlive_the_process_and_routes_do_not(tmp_path: Path) -> None:
    put = command_of(PutKvConfig(namespace="ORDER_TOPIC_CONFIG", key="T", value="broker-a:4"))

    async with running(tmp_path) as (_, address):
        peer = await RawConnection.to(address)
        assert (await peer.ask(put)).code == 0
        answer = await peer.ask(registering("T", "U"))
        assert bytes(answer.body) == b'{"table":{"T":"broker-a:4"}}'
    async with running(tmp_path, NameServerConfig(order_messages=True)) as (_, address):
        peer = await RawConnection.to(address)
        assert (await peer.ask(asking("T"))).code == 17
        await peer.ask(registering("T", "U"))
        route = TopicRoute.decode((await peer.ask(asking("T"))).body)
        assert route.order_topic_conf == "broker-a:4"
    assert (tmp_path / "kvConfig.json").read_bytes() == b'{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"broker-a:4"}}}'


async def test_settings_are_changed_while_it_runs(tmp_path: Path) -> None:
    async def scenario() -> bytes:
        async with running(tmp_path) as (_, address):
            peer = await RawConnection.to(address)
            await peer.ask(command_of(PutKvConfig(namespace="ORDER_TOPIC_CONFIG", key="T", value="x:1")))
            await peer.ask(registering("T", "U"))
            assert TopicRoute.decode((await peer.ask(asking("T"))).body).order_topic_conf is None
            update = command_of(UpdateNamesrvConfig(), b"orderMessageEnable=true\n")
            assert (await peer.ask(update)).code == 0
            assert TopicRoute.decode((await peer.ask(asking("T"))).body).order_topic_conf == "x:1"
            refused = await peer.ask(command_of(UpdateNamesrvConfig(), b"kvConfigPath=/tmp/x\n"))
            assert (refused.code, refused.remark) == (16, "Can not update config in black list.")
            return bytes((await peer.ask(command_of(GetNamesrvConfig()))).body)

    assert b"orderMessageEnable=true\n" in (await scenario())
    assert "orderMessageEnable=true\n" in (tmp_path / "namesrv.properties").read_text()


async def test_route_queries_wait_for_the_service_when_told_so(tmp_path: Path) -> None:
    async def scenario() -> RemotingCommand:
        async with running(tmp_path, NameServerConfig(wait_for_service=True)) as (_, address):
            return await (await RawConnection.to(address)).ask(asking("T"))

    answer = await scenario()
    assert (answer.code, answer.remark) == (1, "name server not ready")


# ── peers that are broken ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("data", "is_closed"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", True, id="garbage"),
        pytest.param(struct.pack(">i", 0), True, id="length-0"),
        pytest.param(struct.pack(">i", -5), True, id="negative-length"),
        pytest.param(struct.pack(">i", 16 * 1024 * 1024 - 3), True, id="too-long"),
        pytest.param(struct.pack(">i", 16 * 1024 * 1024 - 4), False, id="longest"),
        pytest.param(struct.pack(">ii", 8, 100) + b"{}{}", True, id="header-longer-than-frame"),
        pytest.param(struct.pack(">ii", 6, 2) + b"[]", True, id="header-is-an-array"),
        pytest.param(struct.pack(">ii", 4, 0), False, id="empty-header"),
    ],
)
async def test_broken_frames_close_their_connection_only(tmp_path: Path, data: bytes, is_closed: bool) -> None:
    async with running(tmp_path) as (_, address):
        broken, good = await RawConnection.to(address), await RawConnection.to(address)
        await good.ask(registering("T", "U"))
        broken.send(data)
        assert await broken.is_closed_within(60.0 if is_closed else 0.2) == is_closed
        assert (await good.ask(asking("T"))).code == 0


async def test_a_registration_with_a_wrong_checksum_or_a_broken_body_is_refused(tmp_path: Path) -> None:
    async def scenario() -> list[RemotingCommand]:
        async with running(tmp_path) as (_, address):
            peer = await RawConnection.to(address)
            wrong = registering("T", "U")
            wrong.body = bytes(wrong.body) + b" "
            broken = registering("T", "U")
            broken.body = b"{broken"
            assert broken.ext_fields is not None
            del broken.ext_fields["bodyCrc32"]
            single = registering("T")
            return [await peer.ask(request) for request in (wrong, broken, single)]

    answers = await scenario()
    assert [answer.code for answer in answers] == [1, 1, 1]
    assert [answers[0].remark, answers[2].remark] == ["crc32 not match", "register broker failed"]
