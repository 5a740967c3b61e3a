"""A broker whose loops die: one bad moment passes, a loop that cannot live stops the program with a reason."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from skyrocket.broker.broker import Broker
from skyrocket.broker.state.persistence import Persistence
from skyrocket.config.sections import BrokerConfig, StoreConfig
from skyrocket.protocol.requests.offsets import UpdateConsumerOffset
from skyrocket.remoting.client import RemotingClient
from tests.faults.broker_load import GROUP, TOPIC, pull, send_request
from tests.waiting import until

PROGRAM = """
import sys
from skyrocket.broker.state import persistence
from skyrocket.remoting import services

async def doomed(self):
    raise OSError("no space left")

persistence.Persistence.run = doomed
services.Services.__init__.__kwdefaults__["first_pause_seconds"] = 0.01
from skyrocket.cli import main
sys.argv = ["skyrocket", *sys.argv[1:]]
main()
"""


async def test_offsets_are_saved_although_the_saving_died_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lives = 0
    run = Persistence.run

    async def dies_once(self: Persistence) -> None:
        nonlocal lives
        lives += 1
        if lives == 1:
            raise RuntimeError("a bad moment")
        await run(self)

    monkeypatch.setattr(Persistence, "run", dies_once)
    config = BrokerConfig(
        listen_port=0, bind_address="127.0.0.1", store_root=str(tmp_path), flush_offsets_interval_ms=50
    )
    file = tmp_path / "config" / "consumerOffset.json"

    store = StoreConfig(commit_log_file_size=1 << 20, preallocate_bytes=1 << 16)
    async with Broker(config, store) as broker, RemotingClient() as client:
        address = str(await broker.start())
        await client.call(address, send_request(0), b"x")
        assert await pull(client, address, 0, 0) == [b"x"]
        await client.call(address, UpdateConsumerOffset(consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=1))
        await until(lambda: file.exists() and GROUP in file.read_text())
    assert lives == 2


def test_a_program_without_a_vital_loop_stops_and_says_why(tmp_path: Path) -> None:
    arguments = ["standalone", "--namesrv-port", "0", "--listen-port", "0", "--store", str(tmp_path / "store")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments, "--set", "bindAddress=127.0.0.1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert re.search(r"skyrocket standalone: doomed died 6 times .* at last of OSError: no space left\.", done.stderr)
    assert done.stderr.count("a service died and is run again") == 5
    assert not (tmp_path / "store" / "abort").exists()  # it stopped in order
