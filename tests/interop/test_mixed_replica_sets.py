"""Replica sets of both makers under one controller: each follows the other, and each takes over from the other."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from skyrocket.cli import app
from skyrocket.protocol.bodies.controller import ReplicasInfo
from skyrocket.remoting.client import RemotingClient
from tests.faults.broker_load import pull
from tests.integration.program import Program
from tests.interop.apache import Apache
from tests.interop.controller_mode import BROKER, ApacheReplica, in_sync, our_controller, until_set
from tests.interop.test_apache_brokers_under_our_controller import send
from tests.interop.test_replication_pairs import our_name_server
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

QUEUES = 4


@pytest.fixture
def newest(apache_of_version: Callable[[str], Apache]) -> Apache:
    return apache_of_version("5.4.0")


class OurReplica:
    """One broker of ours; it can be killed and started again, as `ApacheReplica`."""

    def __init__(self, folder: Path, number: int, names: str, controllers: str) -> None:
        self.port = free_port()
        self.store = folder / f"store-{number}"
        self._folder = folder
        settings = (
            f"brokerName={BROKER}",
            "mappedFileSizeCommitLog=1048576",
            "maxHashSlotNum=1000",
            "maxIndexNum=4000",
            "enableControllerMode=true",
            f"controllerAddr={controllers}",
            "allAckInSyncStateSet=true",
        )
        self._arguments = ["broker", "-n", names, "--listen-port", str(self.port), "--broker-ip", "127.0.0.1"]
        self._arguments += ["--store", str(self.store), "--verbose"]
        for setting in settings:
            self._arguments += ["--set", setting]
        self._program: Program | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._program = Program(*self._arguments, home=self._folder)
        self._program.await_line("boot success")

    def kill(self) -> None:
        """kill -9."""
        assert self._program is not None
        self._program.kill()
        self.stop()

    def stop(self) -> None:
        if self._program is not None:
            if self._program.process.poll() is None:
                self._program.stop()
            self._program.__exit__()
            self._program = None


@contextlib.contextmanager
def replicas_of(
    kinds: str, apache: Apache, folder: Path, names: str, controllers: str
) -> Iterator[list[ApacheReplica | OurReplica]]:
    """`A` is Apache's, `O` ours; started one after the other, so that the first is the first master."""
    found: list[ApacheReplica | OurReplica] = [
        ApacheReplica(apache, folder, number, names, controllers)
        if kind == "A"
        else OurReplica(folder, number, names, controllers)
        for number, kind in enumerate(kinds)
    ]
    try:
        for replica in found:
            replica.start()
        yield found
    finally:
        for replica in found:
            replica.stop()


def _is_led_by_another(gone: str | None, info: ReplicasInfo) -> bool:
    return info.master_address not in (None, gone)


async def bodies(client: RemotingClient, master: str) -> list[int]:
    """The numbers of all messages."""
    found: list[int] = []
    for queue_id in range(QUEUES):
        offset = 0
        while messages := await pull(client, master, queue_id, offset):
            found += map(int, messages)
            offset += len(messages)
    return sorted(found)


@pytest.mark.parametrize("kinds", ["AO", "OA", "AOO", "OAA"])
async def test_each_maker_takes_over_from_the_other(tmp_path: Path, newest: Apache, kinds: str) -> None:
    with (
        our_name_server(tmp_path) as names,
        our_controller(tmp_path) as controller,
        replicas_of(kinds, newest, tmp_path, names, controller) as replicas,
    ):
        async with RemotingClient() as client:
            first = replicas[0]
            sent = 0
            before = await until_set(client, controller, lambda info: in_sync(info) == len(kinds), "all are in sync")
            assert before.master_address == first.address
            for _ in range(2):  # from the first to another one, and on from that
                await send(names, sent, 100)
                sent += 100
                master = next(each for each in replicas if each.address == before.master_address)
                master.kill()
                gone = before.master_address
                before = await until_set(client, controller, partial(_is_led_by_another, gone), "another master")
                await send(names, sent, 100)
                sent += 100
                master.start()
                before = await until_set(
                    client, controller, lambda info: in_sync(info) == len(kinds), "all are in sync again"
                )
            assert before.master_address is not None
            assert set(await bodies(client, before.master_address)) >= set(range(sent))
        for replica in replicas:
            replica.stop()
        for other in replicas[1:]:
            result = CliRunner().invoke(app, ["inspect", "--compare", str(replicas[0].store), str(other.store)])
            assert result.exit_code == 0, result.output
