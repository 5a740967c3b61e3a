"""Apache's brokers in controller mode, and Apache's mqadmin, with our controller."""

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skyrocket.client import Message, Producer
from skyrocket.client.core.settings import ClientSettings
from skyrocket.errors import SkyrocketError
from skyrocket.remoting.client import RemotingClient
from tests.interop.apache import Apache
from tests.interop.apache_admin import admin_outputs
from tests.interop.controller_mode import (
    BROKER,
    CLUSTER,
    SECONDS,
    apache_replicas,
    in_sync,
    our_controller,
    until_set,
)
from tests.interop.test_replication_pairs import our_name_server

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def newest(apache_of_version: Callable[[str], Apache]) -> Apache:
    return apache_of_version("5.4.0")


async def send(names: str, first: int, count: int) -> None:
    async with Producer("Shop", client=ClientSettings(name_servers=names)) as producer:
        await _as_soon_as_possible(producer, b"%d" % first)
        for number in range(first + 1, first + count):
            await producer.send(Message("Orders", b"%d" % number))


async def _as_soon_as_possible(producer: Producer, body: bytes) -> None:
    """A new master registers some time after its election."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            await producer.send(Message("Orders", body))
        except SkyrocketError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.2)
        else:
            return


async def test_a_killed_master_is_followed_by_its_slave_and_comes_back_as_one(tmp_path: Path, newest: Apache) -> None:
    with (
        our_name_server(tmp_path) as names,
        our_controller(tmp_path) as controller,
        apache_replicas(newest, tmp_path, 2, names, controller) as (first, second),
    ):
        async with RemotingClient() as client:
            before = await until_set(client, controller, lambda info: in_sync(info) == 2, "both are in sync")
            assert before.master_address == first.address
            await send(names, 0, 100)
            first.kill()
            await until_set(
                client, controller, lambda info: info.master_address == second.address, "the slave is master"
            )
            await send(names, 100, 100)
            first.start()
            after = await until_set(client, controller, lambda info: in_sync(info) == 2, "both are in sync again")
            assert after.master_address == second.address
            assert after.master_epoch == 2


def field(output: str, name: str) -> str:
    found = re.search(rf"#{name}\s+(\S+)", output)
    assert found is not None, output
    return found[1]


async def test_mqadmin_sees_moves_and_cleans_a_set(tmp_path: Path, newest: Apache) -> None:
    with (
        our_name_server(tmp_path) as names,
        our_controller(tmp_path) as controller,
        apache_replicas(newest, tmp_path, 2, names, controller) as (first, second),
    ):
        async with RemotingClient() as client:
            await until_set(client, controller, lambda info: in_sync(info) == 2, "both are in sync")
            shown, metadata, moved, config, _, changed, refused = admin_outputs(
                newest,
                [
                    f"getSyncStateSet -a {controller} -b {BROKER}",
                    f"getControllerMetaData -a {controller}",
                    f"electMaster -a {controller} -b 2 -bn {BROKER} -c {CLUSTER}",
                    f"getControllerConfig -a {controller}",
                    f"updateControllerConfig -a {controller} -k enableElectUncleanMaster -v true",
                    f"getControllerConfig  -a {controller}",
                    f"cleanBrokerMetadata -a {controller} -bn {BROKER} -c {CLUSTER}",
                ],
            )
            assert field(shown, "MasterAddr") == first.address
            assert field(shown, "SyncStateSetNums") == "2"
            assert field(metadata, "ControllerLeaderAddress") == controller
            assert second.address in moved, moved
            assert re.search(r"enableElectUncleanMaster\s*=\s*false", config), config
            assert re.search(r"enableElectUncleanMaster\s*=\s*true", changed), changed
            assert "still alive" in refused, refused
            await until_set(client, controller, lambda info: in_sync(info) == 2, "both are in sync again")
            (epochs,) = admin_outputs(newest, [f"getBrokerEpoch -n {names} -b {BROKER}"])
            assert epochs.count("#Epoch: EpochEntry{epoch=") == 2, epochs
            assert f"{second.address}\n#brokerId\t0\n" in epochs, epochs
            second.kill()
            await until_set(client, controller, lambda info: info.master_address == first.address, "it moved back")
            cleaned, gone = admin_outputs(
                newest,
                [
                    f"cleanBrokerMetadata -a {controller} -bn {BROKER} -c {CLUSTER} -b 2",
                    f"getSyncStateSet -a {controller} -b {BROKER}",
                ],
            )
            assert "success" in cleaned, cleaned
            assert second.address not in gone, gone
