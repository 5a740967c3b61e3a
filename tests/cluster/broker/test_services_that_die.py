"""A service of a broker that dies is run again."""

from pathlib import Path

import pytest

from skyrocket.broker.broker import Broker
from skyrocket.broker.state.persistence import Persistence
from skyrocket.config.sections import BrokerConfig, StoreConfig
from skyrocket.protocol.requests.offsets import UpdateConsumerOffset
from skyrocket.remoting.client import RemotingClient
from tests.faults.broker_load import GROUP, TOPIC, pull, send_request
from tests.waiting import until


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
