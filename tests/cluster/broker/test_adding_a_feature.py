"""CONTRIBUTING.md shows how a request is added; its code is run here, in a broker that has one feature more."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.broker.broker import Broker
from skyrocket.broker.features import FEATURES
from skyrocket.config.sections import BrokerConfig
from skyrocket.protocol.errors import TopicNotExist
from skyrocket.protocol.requests.header import REQUESTS
from skyrocket.remoting.client import RemotingClient
from tests.cluster.broker.broker_fixture import SMALL

ROOT = Path(__file__).parents[3]
IMPORTS = """
from collections.abc import Iterable
from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.parts import Parts
from skyrocket.observability.exposition import Kind, Metric, single
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.header import Header, Int, Request, answer, request
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve
"""


@pytest.fixture
def written() -> Any:
    """What the page's code defines."""
    page = (ROOT / "CONTRIBUTING.md").read_text().partition("## How to add a request")[2].partition("\n## ")[0]
    blocks = [re.sub(r"^   ", "", block, flags=re.M) for block in re.findall(r"```python\n(.*?)```", page, re.S)]
    assert len(blocks) == 2
    scope: dict[str, Any] = {"__name__": "tests.contributing"}
    exec(IMPORTS + "\n".join(blocks), scope)  # the page's own code
    yield scope
    del REQUESTS[scope["CountQueues"].code]


async def test_a_request_is_a_type_a_handler_and_a_line(written: dict[str, Any], tmp_path: Path) -> None:
    config = replace(BrokerConfig(), bind_address="127.0.0.1", broker_ip="127.0.0.1", store_root=str(tmp_path))
    kind, ask = written["QueueCountFeature"], written["CountQueues"]
    async with Broker(config, SMALL, features=(*FEATURES, kind)) as broker, RemotingClient() as client:
        address = str(await broker.start())
        before = (await client.call(address, ask())).header.queue_count
        broker.store.queues.get_or_create("Orders", 0)
        broker.store.queues.get_or_create("Orders", 1)
        broker.tables.topics.ensure("Orders", 2)
        assert (await client.call(address, ask())).header.queue_count == before + 2
        assert (await client.call(address, ask(topic="Orders"))).header.queue_count == 2
        with pytest.raises(TopicNotExist):
            await client.call(address, ask(topic="Nobody"))
        (metric,) = broker.feature(kind).metrics()
        assert [value for _, value in metric.samples] == [4]
