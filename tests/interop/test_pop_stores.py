"""Messages that a consumer has in hand when the broker stops: RocketMQ's are revived by us, and ours by RocketMQ."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skyrocket.config.sections import StoreConfig
from skyrocket.protocol.bodies.route import TopicRoute
from skyrocket.protocol.errors import TopicNotExist
from skyrocket.protocol.requests.messaging import SendMessageV2
from skyrocket.protocol.requests.pop import PopMessage
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.remoting.client import RemotingClient
from tests.cluster.broker import broker_fixture
from tests.interop import rocketmq_broker
from tests.interop.apache import Apache
from tests.unit.broker.pop.pop_world import Popped, popped_messages

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

VERSION = "5.4.0"
TOPIC, GROUP = "TopicInHand", "GroupInHand"
CONFIG = StoreConfig(commit_log_file_size=1 << 20, preallocate_bytes=1 << 16, index_slots=1000, index_entries=4000)


async def send(client: RemotingClient, broker: str, body: bytes) -> None:
    request = SendMessageV2(
        producer_group="Producers",
        topic=TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=0,
        born_timestamp=1_700_000_000_000,
        flag=0,
        properties=f"UNIQ_KEY\x01U{body.decode()}\x02",
        reconsume_times=0,
    )
    await client.call(broker, request, body)


async def pop(client: RemotingClient, broker: str, **changes: Any) -> list[Popped]:
    fields: dict[str, Any] = {"consumer_group": GROUP, "topic": TOPIC, "queue_id": -1, "max_msg_nums": 32}
    times = {"invisible_time": 60_000, "poll_time": 0, "init_mode": 0}
    request = PopMessage(**(fields | times | changes))
    seconds = request.poll_time / 1000 + 10
    reply = await client.call(broker, request, accepted=frozenset({0, 210}), timeout_seconds=seconds)
    return popped_messages(bytes(reply.body), reply.header, GROUP)


async def leave_in_hand(broker: str) -> None:
    """Three messages: one is acknowledged, two are in a consumer's hand."""
    async with RemotingClient() as client:
        for body in (b"one", b"two", b"three"):
            await send(client, broker, body)
        popped = await pop(client, broker, invisible_time=8000)
        assert [each.body for each in popped] == [b"one", b"two", b"three"]
        await client.call(broker, popped[1].acknowledgement())


async def find_again(broker: str) -> None:
    """The two come again, the acknowledged one does not."""
    async with RemotingClient() as client:
        found: list[Popped] = []
        while len(found) < 2:
            popped = await pop(client, broker, poll_time=30_000)
            assert popped, f"nothing for half a minute, found so far: {found}"
            found += popped
        assert sorted(each.body for each in found) == [b"one", b"three"]
        assert {each.message.reconsume_times for each in found} == {1}
        assert await pop(client, broker, poll_time=3000) == []


async def address_of(name_server: str) -> str:
    """Of the broker, as soon as it has registered."""
    async with RemotingClient() as client:
        for _ in range(300):
            try:
                reply = await client.call(name_server, GetRouteInfoByTopic(topic="TBW102"))
                return TopicRoute.decode(reply.body).brokers[0].addresses[0]
            except TopicNotExist:
                await asyncio.sleep(0.1)
    raise AssertionError("the broker did not register within half a minute")


async def test_what_rocketmq_left_in_hand_is_revived_by_us(
    apache_of_version: Callable[[str], Apache], tmp_path: Path
) -> None:
    store = tmp_path / "store"
    with rocketmq_broker.running_broker(apache_of_version(VERSION), store, CONFIG) as theirs:
        await leave_in_hand(await address_of(theirs.name_server))

    async with broker_fixture.running_broker(tmp_path, store=CONFIG) as given:
        await find_again(given.address)


async def test_what_we_left_in_hand_is_revived_by_rocketmq(
    apache_of_version: Callable[[str], Apache], tmp_path: Path
) -> None:
    async with broker_fixture.running_broker(tmp_path, store=CONFIG) as given:
        await leave_in_hand(given.address)
    with rocketmq_broker.running_broker(apache_of_version(VERSION), tmp_path / "store", CONFIG) as theirs:
        await find_again(await address_of(theirs.name_server))
