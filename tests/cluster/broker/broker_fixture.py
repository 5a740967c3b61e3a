"""A broker on free ports in this process, and what tests ask of it."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from skyrocket.broker.broker import Broker
from skyrocket.clock import ServiceClock
from skyrocket.config.sections import BrokerConfig, BrokerRole, StoreConfig, TlsConfig
from skyrocket.protocol.bodies.heartbeat import ConsumerData, Heartbeat, ProducerData
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.requests.admin_topics import UpdateAndCreateTopic
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.protocol.requests.messaging import SendMessageAnswer, SendMessageV2
from skyrocket.protocol.requests.pulling import PullMessage, PullMessageAnswer
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.exchange import Reply

SMALL = StoreConfig(commit_log_file_size=1 << 20, preallocate_bytes=1 << 16, index_slots=1000, index_entries=4000)
SLAVE = replace(SMALL, broker_role=BrokerRole.SLAVE)
PULL_CODES = frozenset({0, 19, 20, 21})
TOPIC, GROUP = "Orders", "Shop"


class RunningBroker:
    """A broker and a client that talks to it."""

    def __init__(self, broker: Broker, address: Address) -> None:
        self.broker = broker
        self.address = str(address)
        self.port = address.port
        self.client = RemotingClient()

    async def send(
        self, body: bytes = b"x", *, topic: str = TOPIC, queue_id: int = 0, properties: str = ""
    ) -> SendMessageAnswer:
        return (await self.client.call(self.address, message(topic, queue_id, properties), body)).header

    async def pull(
        self, offset: int = 0, *, queue_id: int = 0, suspend_ms: int = 0, expression: str = "*", count: int = 32
    ) -> Reply[PullMessageAnswer]:
        request = pull_request(offset, queue_id, suspend_ms, expression=expression, count=count)
        return await self.client.call(self.address, request, accepted=PULL_CODES, timeout_seconds=suspend_ms / 1000 + 3)

    async def beat(self, client_id: str = "one", group: str = GROUP) -> None:
        await self.client.call(self.address, HeartBeat(), heartbeat(client_id, group))


def new_topic(name: str, queues: int = 4, **changes: Any) -> UpdateAndCreateTopic:
    """The request that creates a topic, or changes it."""
    given: dict[str, Any] = {
        "topic": name,
        "default_topic": "TBW102",
        "read_queue_nums": queues,
        "write_queue_nums": queues,
        "perm": 6,
        "topic_filter_type": "SINGLE_TAG",
        **changes,
    }
    return UpdateAndCreateTopic(**given)


def message(topic: str = TOPIC, queue_id: int = 0, properties: str = "") -> SendMessageV2:
    return SendMessageV2(
        producer_group="Producers",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=queue_id,
        sys_flag=0,
        born_timestamp=1_700_000_000_000,
        flag=0,
        properties=properties,
        reconsume_times=0,
    )


def pull_request(
    offset: int = 0,
    queue_id: int = 0,
    suspend_ms: int = 0,
    *,
    topic: str = TOPIC,
    expression: str = "*",
    count: int = 32,
) -> PullMessage:
    return PullMessage(
        consumer_group=GROUP,
        topic=topic,
        queue_id=queue_id,
        queue_offset=offset,
        max_msg_nums=count,
        sys_flag=0x4 | (0x2 if suspend_ms else 0),
        commit_offset=0,
        suspend_timeout_millis=suspend_ms,
        subscription=expression,
        expression_type="TAG",
    )


def heartbeat(client_id: str, group: str = GROUP, topic: str = TOPIC) -> bytes:
    data = ConsumerData(
        group, "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", (SubscriptionData(topic),)
    )
    return Heartbeat(client_id, (ProducerData("Producers"),), (data,)).encode()


@contextlib.asynccontextmanager
async def running_broker(
    folder: Path,
    config: BrokerConfig | None = None,
    store: StoreConfig = SMALL,
    clock: ServiceClock | None = None,
    tls: TlsConfig | None = None,
    *,
    listen_port: int = 0,
) -> AsyncIterator[RunningBroker]:
    """With its store in `folder`, on a free port unless one is given."""
    chosen = replace(
        config or BrokerConfig(),
        listen_port=listen_port,
        bind_address="127.0.0.1",
        broker_ip="127.0.0.1",
        store_root=str(folder / "store"),
    )
    async with Broker(chosen, store, clock, tls) as broker:
        given = RunningBroker(broker, await broker.start())
        async with given.client:
            yield given
