"""What a name server does not take: monsters, and strangers' changes when it has an account."""

import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.broker.broker import Broker
from skyrocket.config.sections import BrokerConfig, NameServerConfig
from skyrocket.errors import ConfigError
from skyrocket.model.data_version import DataVersion
from skyrocket.protocol.bodies.registration import BrokerRegistration
from skyrocket.protocol.bodies.topics import DATA_VERSION
from skyrocket.protocol.errors import NoPermission, RequestError, SystemFailure, TopicNotExist
from skyrocket.protocol.requests.broker_registration import RegisterBroker, UnregisterBroker
from skyrocket.protocol.requests.kv_config import GetKvConfig, GetNamesrvConfig, PutKvConfig, UpdateNamesrvConfig
from skyrocket.protocol.requests.name_server import WipeWritePerm
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.protocol.signing import Credentials, Signer
from skyrocket.remoting.client import RemotingClient
from tests.cluster.broker.broker_fixture import SMALL
from tests.cluster.namesrv.name_server_fixture import running
from tests.packed_registrations import encode_compressed
from tests.unit.namesrv.samples import registration
from tests.waiting import until


def registering(*, compressed: bool) -> RegisterBroker:
    return RegisterBroker(
        broker_name="broker-x",
        broker_addr="10.0.0.1:10911",
        cluster_name="C",
        ha_server_addr="10.0.0.1:10912",
        broker_id=0,
        compressed=compressed,
        body_crc32=0,
    )


@pytest.mark.parametrize("compressed", [False, True])
async def test_a_registration_with_more_topics_than_allowed_is_refused_by_the_setting(
    tmp_path: Path, compressed: bool
) -> None:
    encode = encode_compressed if compressed else BrokerRegistration.encode
    async with (
        running(tmp_path, NameServerConfig(max_registration_topics=100)) as (_, address),
        RemotingClient() as client,
    ):
        body = encode(registration(*(f"T{number}" for number in range(101))))
        with pytest.raises(RequestError, match="101 topics, 100 are allowed; maxRegistrationTopics"):
            await client.call(str(address), registering(compressed=compressed), body)
        with pytest.raises(TopicNotExist):
            await client.call(str(address), GetRouteInfoByTopic(topic="T1"))
        body = encode(registration(*(f"T{number}" for number in range(100))))
        await client.call(str(address), registering(compressed=compressed), body)
        await client.call(str(address), GetRouteInfoByTopic(topic="T1"))


async def test_all_brokers_together_have_a_bound_of_topics_and_what_one_leaves_is_free(tmp_path: Path) -> None:
    async with running(tmp_path, NameServerConfig(max_routes=100)) as (server, address), RemotingClient() as client:

        async def register(name: str, topics: int) -> None:
            body = registration(*(f"{name}-{number}" for number in range(topics))).encode()
            request = replace(registering(compressed=False), broker_name=name, broker_addr=f"{name}:10911")
            await client.call(str(address), request, body)

        await register("a", 49)
        with pytest.raises(RequestError, match=r"would have 101 routes, 100 are allowed; maxRoutes"):
            await register("b", 50)
        assert set(server.table.brokers) == {"a"}
        await register("b", 49)
        await register("b", 49)
        for name in "cd":
            with pytest.raises(RequestError, match="would have 101 routes"):
                await register(name, 0)
        gone = UnregisterBroker(broker_name="a", broker_addr="a:10911", cluster_name="C", broker_id=0)
        await client.call(str(address), gone)
        await register("c", 49)
        assert server.table.routes == sum(len(brokers) for brokers in server.table.topics.values()) == 98


async def test_a_registration_that_inflates_without_end_is_refused(tmp_path: Path) -> None:
    version = DATA_VERSION.encode(DataVersion())
    topic = b"T 1 1 6 SINGLE_TAG"
    many = b"".join((struct.pack(">i", len(version)), version, struct.pack(">i", 1_000_000)))
    many += (struct.pack(">i", len(topic)) + topic) * 1_000_000
    async with running(tmp_path) as (_, address), RemotingClient() as client:
        for body, reason in (
            (zlib.compress(bytes(200 << 20)), "more than 33554432 bytes"),
            (zlib.compress(many), "1000000 topics, 20000 are allowed"),
        ):
            with pytest.raises(RequestError, match=reason):
                await client.call(str(address), registering(compressed=True), body, timeout_seconds=30)


async def test_all_kv_values_together_have_a_bound(tmp_path: Path) -> None:
    async with running(tmp_path, NameServerConfig(max_kv_bytes=1000)) as (_, address), RemotingClient() as client:
        await client.call(str(address), PutKvConfig(namespace="N", key="small", value="x" * 900))
        for key in ("small", "other"):
            with pytest.raises(SystemFailure, match=r"would have \d+ bytes, 1000 are allowed; maxKvConfigBytes"):
                await client.call(str(address), PutKvConfig(namespace="N", key=key, value="y" * 1000))
        kept = await client.call(str(address), GetKvConfig(namespace="N", key="small"))
        assert kept.header.value == "x" * 900


async def test_with_an_account_only_signed_requests_change_anything_and_everybody_may_ask(tmp_path: Path) -> None:
    guarded = NameServerConfig(access_key="brokers", secret_key="12345678")
    credentials = '{"accessKey":"brokers","secretKey":"12345678"}'
    async with running(tmp_path, guarded) as (server, address), RemotingClient() as stranger:
        for request in (
            registering(compressed=False),
            PutKvConfig(namespace="N", key="k", value="v"),
            WipeWritePerm(broker_name="broker-a"),
            UpdateNamesrvConfig(),
        ):
            with pytest.raises(
                NoPermission, match=r"must be signed by the account.*innerClientAuthenticationCredentials"
            ):
                await stranger.call(str(address), request)
        thief = RemotingClient(signer=Signer(Credentials("brokers", "guessed")))
        operator = RemotingClient(signer=Signer(Credentials("brokers", "12345678")))
        config = BrokerConfig(
            listen_port=0,
            bind_address="127.0.0.1",
            broker_ip="127.0.0.1",
            store_root=str(tmp_path / "store"),
            name_servers=str(address),
            inner_client_credentials=credentials,
        )
        async with thief, operator, Broker(config, SMALL) as broker:
            with pytest.raises(NoPermission):
                await thief.call(str(address), PutKvConfig(namespace="N", key="k", value="v"))
            await operator.call(str(address), PutKvConfig(namespace="N", key="k", value="v"))
            with pytest.raises(NoPermission, match="black list"):
                await operator.call(str(address), UpdateNamesrvConfig(), b"namesrvSecretKey=other")
            await operator.call(str(address), UpdateNamesrvConfig(), b"waitSecondsForService=44")
            await broker.start()

            await until(lambda: "TBW102" in server.table.topics)
            await stranger.call(str(address), GetRouteInfoByTopic(topic="TBW102"))
            shown = await stranger.call(str(address), GetNamesrvConfig())
            assert b"12345678" not in bytes(shown.body)
    assert "12345678" not in (tmp_path / "namesrv.properties").read_text()


def test_half_an_account_is_an_error_at_the_start() -> None:
    with pytest.raises(ConfigError, match="namesrvAccessKey and namesrvSecretKey belong together"):
        NameServerConfig(access_key="brokers")
