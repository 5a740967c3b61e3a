"""`standalone --replicas 3 --failover`: a killed master is followed by another one, and comes back as a slave."""

import asyncio
import os
import re
import signal
from pathlib import Path

import pytest

from skyrocket.client import LitePullConsumer, Message, Producer
from skyrocket.client.core.settings import ClientSettings
from skyrocket.errors import SkyrocketError
from tests.integration.program import Program, Standalone
from tests.waiting import SECONDS

THREE = ("--replicas", "3", "--failover")
MASTER = r"^\[broker-a\] master is (\S+) \(epoch {epoch}\)"
STORE = r"^broker-a replica \d  {address}, store (.*)$"


async def send(producer: Producer, body: bytes) -> None:
    """Until it is acknowledged."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await producer.send(Message("Orders", body))
            except SkyrocketError:
                await asyncio.sleep(0.05)
            else:
                return


async def stored(name_server: str, count: int) -> list[bytes]:
    found: list[bytes] = []
    async with LitePullConsumer("Shop", client=ClientSettings(name_servers=name_server)) as consumer:
        await consumer.subscribe("Orders")
        async with asyncio.timeout(SECONDS):
            while len(found) < count:
                found += [message.body for message in await consumer.poll(timeout=1)]
    return found


@pytest.mark.requirement("D030")
async def test_a_killed_master_is_followed_by_another_and_comes_back_as_a_slave(tmp_path: Path) -> None:
    patient = "controllerHeartBeatTimeoutMills=60000"  # a killed one is noticed at once, a slow one lives
    with Standalone(tmp_path, patient, arguments=THREE) as program:
        first = program.await_line(MASTER.format(epoch=1))[1]
        where = Path(program.await_line(STORE.format(address=re.escape(first)))[1])
        async with Producer("Shop", client=ClientSettings(name_servers=program.name_server)) as producer:
            await send(producer, b"before")
            os.kill(int((where / "abort").read_text()), signal.SIGKILL)
            await send(producer, b"after")
        second = program.await_line(MASTER.format(epoch=2))[1]
        assert second != first
        program.await_line(MASTER.format(epoch=2) + r", in sync with it: \S+, \S+$")
        assert sorted(await stored(program.name_server, 2)) == [b"after", b"before"]
        assert program.stop() == 0


def test_failover_without_replicas_says_what_to_add(tmp_path: Path) -> None:
    with Program("standalone", "--failover", "--store", str(tmp_path), home=tmp_path) as program:
        assert program.process.wait(60) == 2
        program.await_line(r"--failover needs replicas that can take over: add --replicas 3")
