"""The same questions to Apache's controller and to ours: the answers are the same, but for quotes."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from skyrocket.cli.controller import build_controller
from skyrocket.config.sections import ControllerConfig
from skyrocket.protocol.bodies.controller import BROKER_NAMES, SyncStateSet
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat
from skyrocket.protocol.requests.controller import (
    AlterSyncStateSet,
    ApplyBrokerId,
    CleanBrokerData,
    ElectMaster,
    GetControllerMetadata,
    GetControllerMetadataAnswer,
    GetNextBrokerId,
    GetReplicaInfo,
    GetSyncStateData,
    RegisterAtController,
)
from skyrocket.protocol.requests.header import Request
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.exchange import command_of
from tests.interop.apache import Apache
from tests.interop.rocketmq_broker import await_port, process_of
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

CLUSTER, NAME, GROUP = "DefaultCluster", "broker-a", "group1"


class Question(NamedTuple):
    """A request with its body."""

    request: Request[Any]
    body: bytes = b""


def apply_id(broker_id: int, time: int = 0, name: str = NAME) -> Question:
    code = f"127.0.0.1:{broker_id};{time}"
    return Question(
        ApplyBrokerId(cluster_name=CLUSTER, broker_name=name, applied_broker_id=broker_id, register_check_code=code)
    )


def register(broker_id: int, name: str = NAME) -> Question:
    return Question(
        RegisterAtController(
            cluster_name=CLUSTER, broker_name=name, broker_id=broker_id, broker_address=f"127.0.0.1:{broker_id}"
        )
    )


def heartbeat(broker_id: int | None, **said: int) -> Question:
    return Question(
        BrokerHeartbeat(
            cluster_name=CLUSTER,
            broker_addr=f"127.0.0.1:{broker_id}",
            broker_name=NAME,
            broker_id=broker_id,
            heartbeat_timeout_millis=600_000,
            **said,
        )
    )


def alter(*broker_ids: int, master: int = 1, master_epoch: int = 1, epoch: int = 1, name: str = NAME) -> Question:
    request = AlterSyncStateSet(broker_name=name, master_broker_id=master, master_epoch=master_epoch)
    return Question(request, SyncStateSet(broker_ids, epoch).encode())


def elect(broker_id: int, *, designated: bool = False, name: str = NAME) -> Question:
    return Question(
        ElectMaster(cluster_name=CLUSTER, broker_name=name, broker_id=broker_id, designate_elect=designated)
    )


def clean(ids: str | None = None, *, living: bool = False, name: str = NAME) -> Question:
    return Question(
        CleanBrokerData(
            cluster_name=CLUSTER,
            broker_name=name,
            broker_controller_ids_to_clean=ids,
            is_clean_living_broker=living,
        )
    )


NEXT = Question(GetNextBrokerId(cluster_name=CLUSTER, broker_name=NAME))
INFO = Question(GetReplicaInfo(broker_name=NAME))
DATA = Question(GetSyncStateData(), BROKER_NAMES.encode((NAME, "unknown")))

QUESTIONS = (
    # nothing is known yet
    *(NEXT, INFO, DATA, Question(GetSyncStateData()), register(1), elect(1), alter(1), clean(), apply_id(2)),
    # ids
    *(apply_id(1), apply_id(1), apply_id(1, time=7), NEXT, apply_id(2), apply_id(3), NEXT, INFO, DATA),
    *(register(1), register(9), heartbeat(None)),
    # the first master, and its set
    *(heartbeat(1, epoch=1, max_offset=10), heartbeat(2, epoch=1, max_offset=9, confirm_offset=9)),
    *(elect(1), elect(1), elect(2), INFO, DATA, register(2)),
    *(alter(1), alter(1, 2, master=2), alter(1, 2, master_epoch=3), alter(1, 2, epoch=7), alter(1, 9), alter(1, 3)),
    *(alter(2), alter(1, 2), alter(1, 2), INFO, DATA),
    # operators
    *(elect(3, designated=True), elect(1, designated=True), elect(2, designated=True), elect(2, designated=True)),
    *(INFO, DATA, clean(), clean("1"), clean("1;x"), clean("3"), DATA, NEXT, clean(name="unknown")),
    *(clean(living=True), DATA, NEXT),
)


@contextlib.asynccontextmanager
async def ours(folder: Path) -> AsyncIterator[str]:
    config = ControllerConfig(
        group=GROUP,
        peers="n0-127.0.0.1:0",
        bind_address="127.0.0.1",
        store=f"file:{folder}/replica-sets",
        config_store_path=f"{folder}/controller.properties",
    )
    async with build_controller(config) as controller:
        yield str(await controller.start())


@contextlib.contextmanager
def apaches(apache: Apache, folder: Path) -> Iterator[str]:
    port = free_port()
    settings = {
        "controllerDLegerGroup": GROUP,
        "controllerDLegerPeers": f"n0-127.0.0.1:{port}",
        "controllerDLegerSelfId": "n0",
        "controllerStorePath": folder / "dledger",
        "mappedFileSize": 1 << 20,
    }
    main_class = "org.apache.rocketmq.controller.ControllerStartup"
    with process_of(apache, folder, "controller", main_class, settings) as process:
        await_port(process, port, folder / "controller.log")
        yield f"127.0.0.1:{port}"


async def leads(client: RemotingClient, address: str) -> None:
    async with asyncio.timeout(60):
        while not (await client.call(address, GetControllerMetadata())).header.is_leader:
            await asyncio.sleep(0.1)
        while (await client.invoke(address, command_of(INFO.request))).code == 2007:
            await asyncio.sleep(0.1)


def shown(answer: RemotingCommand) -> str:
    """Apache's ids as keys have no quotes, which its mqadmin cannot read; ours have them."""
    body = re.sub(rb"([{,])(\d+):", rb'\1"\2":', bytes(answer.body))
    return f"{answer.code} {answer.remark!r} {answer.ext_fields} {body!r}"


async def answers(client: RemotingClient, address: str) -> list[str]:
    found = []
    for question in QUESTIONS:
        answer = await client.invoke(address, command_of(*question), 10.0)
        found.append(f"{question.request} {question.body!r}\n  → {shown(answer)}")
    return found


@pytest.fixture
def newest(apache_of_version: Callable[[str], Apache]) -> Apache:
    return apache_of_version("5.4.0")


async def test_both_controllers_give_the_same_answers(tmp_path: Path, newest: Apache) -> None:
    (tmp_path / "apache").mkdir()
    async with RemotingClient() as client, ours(tmp_path) as our_address:
        with apaches(newest, tmp_path / "apache") as their_address:
            await leads(client, their_address)
            theirs = await answers(client, their_address)
            metadata = await client.call(their_address, GetControllerMetadata())
        assert metadata.header == GetControllerMetadataAnswer(
            group=GROUP,
            controller_leader_id="n0",
            controller_leader_address=their_address,
            is_leader=True,
            peers=f"n0:{their_address};",
        )
        assert await answers(client, our_address) == theirs
        metadata = await client.call(our_address, GetControllerMetadata())
        assert metadata.header.peers == f"n0:{our_address};"
        assert metadata.header.controller_leader_address == our_address
