"""A controller over the wire: masters that are lost, controllers that follow each other, what operators do."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from skyrocket.cli.controller import build_controller
from skyrocket.cli.namesrv import embedded_controller, name_server
from skyrocket.config.sections import ControllerConfig, NameServerConfig, TlsConfig
from skyrocket.controller.engine_choice import engine_of
from skyrocket.errors import ConfigError
from skyrocket.protocol.errors import (
    InvalidControllerRequest,
    NoPermission,
    NotControllerLeader,
    RequestError,
    SystemFailure,
)
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat
from skyrocket.protocol.requests.controller import (
    GetControllerConfig,
    GetControllerMetadata,
    GetReplicaInfo,
    GetReplicaInfoAnswer,
    UpdateControllerConfig,
)
from skyrocket.protocol.signing import Credentials, Signer
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.listening import CannotListen
from skyrocket.store.disk import Disk
from skyrocket.testing.clock import FakeClock
from tests.cluster.command_line import Done, at
from tests.cluster.controller.controller_fixture import CLUSTER, NAME, SeenBroker, listen, replica_set, running
from tests.http_get import get
from tests.ports import free_port
from tests.unit.controller.shared_engine import SharedEngine
from tests.waiting import until


async def master(client: RemotingClient, controller: str) -> GetReplicaInfoAnswer:
    return (await client.call(controller, GetReplicaInfo(broker_name=NAME))).header


# ── masters that are lost ────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_master_whose_connection_ends_is_followed_at_once_and_the_others_are_told(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, address), replica_set(address, size=3) as (first, second, third):
        await second.beat(epoch=1, max_offset=5)
        await third.beat(epoch=1, max_offset=9)
        await first.client.close()
        await until(lambda: second.epoch == third.epoch == 2)
        header, in_sync = second.roles[-1]
        assert (header.master_broker_id, header.master_epoch) == (3, 2)
        assert header.master_address == third.address
        assert (in_sync.broker_ids, in_sync.epoch) == ((3,), header.sync_state_set_epoch)
        assert (await master(third.client, address)).master_broker_id == 3


async def test_a_slave_whose_connection_ends_changes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as (controller, address), replica_set(address) as (first, second):
        await second.client.close()
        await until(lambda: len(controller.machine.live) == 1)
        assert (await master(first.client, address)).master_epoch == 1


async def test_a_silent_master_is_followed(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running(tmp_path, clock=clock) as (controller, address), replica_set(address) as (first, second):
        listen(controller, clock, 11)
        await second.beat()
        controller.scan_brokers()
        await until(lambda: second.epoch == 2)
        assert (await master(second.client, address)).master_broker_id == second.broker_id
        assert first.epoch == 1


async def test_a_set_that_nobody_could_lead_has_a_master_when_one_in_sync_comes_back(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running(tmp_path, clock=clock) as (controller, address), replica_set(address) as (_, second):
        listen(controller, clock, 11)
        controller.scan_brokers()
        async with RemotingClient() as client:
            for _ in range(20):
                if (found := await master(client, address)).master_broker_id is None:
                    break
            assert found.master_epoch == 2
            await second.beat()
            await controller.scan_masters()
            assert (await master(client, address)).master_broker_id == second.broker_id


async def test_whoever_does_not_want_notices_sends_none(tmp_path: Path) -> None:
    config = ControllerConfig(store=f"file:{tmp_path}/sets", notify_roles=False)
    async with running(tmp_path, config) as (controller, address), replica_set(address) as (first, second):
        await first.client.close()
        await until(lambda: controller.decider.elections.by_result["new_master_elected"] == 2)
        assert (await master(second.client, address)).master_broker_id == second.broker_id
    assert second.roles == []


# ── controllers that follow each other ───────────────────────────────────────────────────────────────────────────────


async def test_another_controller_leads_when_the_first_stops_and_knows_who_lives(tmp_path: Path) -> None:
    shared = SharedEngine()
    async with (
        running(tmp_path, engine=shared.seat()) as (_, first_address),
        running(tmp_path, number=1, engine=shared.seat()) as (_, second_address),
        replica_set(first_address, second_address) as (first, second),
    ):
        with pytest.raises(NotControllerLeader):
            await master(first.client, second_address)
        metadata = (await first.client.call(second_address, GetControllerMetadata())).header
        assert metadata.controller_leader_address == first_address
        assert not metadata.is_leader
        assert metadata.peers == f"n0:{first_address};n1:{second_address};"
        shared.expire("n0")
        assert (await first.client.call(second_address, GetControllerMetadata())).header.is_leader
        with pytest.raises(NotControllerLeader):
            await master(first.client, first_address)
        await first.client.close()
        await until(lambda: second.epoch == 2)
        assert (await master(second.client, second_address)).master_broker_id == second.broker_id


async def test_decisions_outlive_their_controller(tmp_path: Path) -> None:
    async with SeenBroker() as broker:
        for broker_id in (1, 2):
            async with running(tmp_path) as (_, address):
                broker.controllers = (address,)
                await broker.get_id()
            assert broker.broker_id == broker_id


# ── what operators do ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_settings_are_shown_and_changed_and_say_whom_an_election_may_take(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, address), replica_set(address) as (first, second), RemotingClient() as client:
        await first.alter(first.broker_id, epoch=2)
        shown = bytes((await client.call(address, GetControllerConfig())).body)
        assert b"enableElectUncleanMaster=false\n" in shown
        await client.call(address, UpdateControllerConfig(), b"enableElectUncleanMaster=true")
        await first.client.close()
        await until(lambda: second.epoch == 2)
        assert (await master(client, address)).master_broker_id == second.broker_id
        assert b"enableElectUncleanMaster=true\n" in (tmp_path / "controller-0.properties").read_bytes()


@pytest.mark.parametrize("key", ["controllerStore", "configStorePath", "controllerDLegerPeers", "controllerSecretKey"])
async def test_who_a_controller_is_cannot_be_changed_while_it_runs(tmp_path: Path, key: str) -> None:
    async with running(tmp_path) as (_, address), RemotingClient() as client:
        with pytest.raises(NoPermission, match="black list"):
            await client.call(address, UpdateControllerConfig(), f"{key}=x".encode())
        with pytest.raises(SystemFailure, match="string2Properties"):
            await client.call(address, UpdateControllerConfig(), b"\xff")


async def test_whoever_changes_something_signs_when_the_controller_has_an_account(tmp_path: Path) -> None:
    config = ControllerConfig(store=f"file:{tmp_path}/sets", access_key="keeper", secret_key="12345678")
    beat = BrokerHeartbeat(cluster_name=CLUSTER, broker_addr="a:1", broker_name=NAME, broker_id=1)
    async with running(tmp_path, config) as (_, address), RemotingClient() as client:
        assert (await client.call(address, GetControllerMetadata())).header.is_leader
        with pytest.raises(NoPermission, match="controllerAccessKey"):
            await client.call(address, beat)
        async with RemotingClient(signer=Signer(Credentials("keeper", "12345678"))) as keeper:
            await keeper.call(address, beat)


async def test_what_a_controller_tells_over_http(tmp_path: Path) -> None:
    port = free_port()
    config = ControllerConfig(store=f"file:{tmp_path}/sets", metrics_port=port)
    async with running(tmp_path, config) as (_, address), replica_set(address):
        status, page = await in_thread(port, "/metrics")
        assert status == 200
        found = {
            sample.name: sample.value for family in text_string_to_metric_families(page) for sample in family.samples
        }
        assert found["rocketmq_role"] == 3
        assert found["rocketmq_active_broker_num"] == 2
        assert found["skyrocket_controller_replica_sets"] == 1
        assert found["skyrocket_controller_writes_total"] == 4
        assert await in_thread(port, "/ready") == (200, '{"status": "ready"}\n')


async def test_a_controller_that_knows_of_no_leader_is_not_ready(tmp_path: Path) -> None:
    port = free_port()
    shared = SharedEngine()
    config = ControllerConfig(metrics_port=port)
    async with running(tmp_path, config, engine=shared.seat()):
        shared.expire("n0")
        status, page = await in_thread(port, "/ready")
        assert status == 503
        assert "no controller stands in line" in page


async def in_thread(port: int, path: str) -> tuple[int, str]:
    return await asyncio.to_thread(get, port, path)


# ── wrong use ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_heartbeat_without_an_id_is_refused(tmp_path: Path) -> None:
    beat = BrokerHeartbeat(cluster_name=CLUSTER, broker_addr="a:1", broker_name=NAME)
    async with running(tmp_path) as (_, address), RemotingClient() as client:
        with pytest.raises(InvalidControllerRequest, match="empty brokerId"):
            await client.call(address, beat)
        with pytest.raises(RequestError):
            await client.call(address, GetReplicaInfo(broker_name="unknown"))


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, address):
        port = address.rpartition(":")[2]
        config = ControllerConfig(
            peers=f"n0-127.0.0.1:{port}", bind_address="127.0.0.1", store=f"file:{tmp_path}/others"
        )
        async with build_controller(config) as other:
            with pytest.raises(CannotListen, match=port):
                await other.start()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"peers": "n0-127.0.0.1:9878;n1-127.0.0.1:9879"}, "serves only one"),
        ({"peers": "n0:127.0.0.1"}, "id-host:port"),
        ({"store": "redis://h/p"}, "zookeeper://"),
        ({"store": "zookeeper://h1,h2"}, "/skyrocket"),
        ({"store": "etcd:///path"}, "etcd://"),
        ({"store": "etcd://h/p", "store_tls": True, "store_tls_ca": "/no/such/file"}, "TrustCertPath"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_what_to_write(changes: dict[str, str], words: str) -> None:
    config = replace(ControllerConfig(), **changes)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=words):
        engine_of(config, Disk())


@pytest.mark.parametrize(
    "given", [{"access_key": "a"}, {"store_user": "a"}, {"store_tls_cert": "a"}, {"session_ms": 5}]
)
def test_settings_that_belong_together_are_given_together(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        ControllerConfig(**given)  # type: ignore[arg-type]


# ── inside a name server ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_name_server_can_hold_a_controller(tmp_path: Path) -> None:
    port = free_port()
    own = free_port()
    controller = embedded_controller(
        ControllerConfig(
            peers=f"n0-127.0.0.1:{own}",
            bind_address="127.0.0.1",
            store=f"file:{tmp_path}/sets",
            metrics_port=port,
        ),
        TlsConfig(),
    )
    config = NameServerConfig(
        listen_port=0,
        bind_address="127.0.0.1",
        kv_config_path=str(tmp_path / "kv"),
        config_store_path=str(tmp_path / "properties"),
        metrics_port=port,
    )
    async with name_server(config, controller=controller) as server:
        await server.start()
        async with replica_set(f"127.0.0.1:{own}"):
            status, page = await in_thread(port, "/metrics")
            assert status == 200
            names = [family.name for family in text_string_to_metric_families(page)]
            assert len(names) == len(set(names))
            assert {"skyrocket_namesrv_brokers", "rocketmq_role"} <= set(names)
            assert (await in_thread(port, "/ready"))[0] == 200
    async with SeenBroker() as alone:
        with pytest.raises(Exception, match="connect"):
            await alone.client.call(f"127.0.0.1:{own}", GetControllerMetadata())


# ── operators ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_operators_see_and_move_sets_without_a_name_server(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, address):
        nowhere = f"127.0.0.1:{free_port()}"

        async def run(*arguments: str) -> Done:
            return await asyncio.to_thread(at, nowhere, "controller", *arguments)

        nothing = await run("replicas", address)
        assert (nothing.code, nothing.output) == (0, "")
        assert "knows no replica set" in nothing.errors
        async with replica_set(address) as (first, second):
            for named in ((), (NAME,)):
                listed = await run("replicas", address, *named, "--output", "json")
                assert listed.code == 0, listed.errors
                rows = [(row["broker"], row["brokerId"], row["role"]) for row in json.loads(listed.output)]
                assert rows == [(NAME, first.broker_id, "master"), (NAME, second.broker_id, "slave")]
            moved = await run("elect", address, NAME, str(second.broker_id), "--yes")
            assert moved.code == 0, moved.errors
            assert (await master(first.client, address)).master_broker_id == second.broker_id
        assert (await run("replicas", address, "broker-z")).code == 4
