"""Servers that go away under load, the same for Skyrocket and Apache RocketMQ: what was confirmed is consumed, and
clients go on by themselves.
"""

import asyncio
import contextlib
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.client import (
    Admin,
    ClientError,
    ConsumeFromWhere,
    Message,
    NoNameServer,
    Producer,
    ProducerSettings,
    PushConsumer,
    PushConsumerSettings,
    ReceivedMessage,
    SendFailed,
)
from tests.integration.client.servers import SERVER_PARAMETERS, Servers, running
from tests.waiting import until

TOPIC = "Orders"
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


@pytest.fixture(params=SERVER_PARAMETERS)
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Servers]:
    with running(request.param, tmp_path) as started:
        yield started


class Load:
    """Eight coroutines that send, a consumer that counts."""

    def __init__(self, names: str) -> None:
        self.confirmed: set[bytes] = set()
        self.got: Counter[bytes] = Counter()
        self._is_over = False
        self._workers: list[asyncio.Task[None]] = []
        settings = ProducerSettings(send_timeout=10, retries=1000, timeout_per_attempt=1.0)
        self._producer = Producer("Shop", names, settings)
        self._consumer = PushConsumer("Billing", names, PushConsumerSettings(consume_from=FIRST, persist_interval=0.2))
        self._consumer.subscribe(TOPIC, self._handle)

    async def __aenter__(self) -> "Load":
        await self._producer.start()
        await self._consumer.start()
        self._workers = [asyncio.create_task(self._work(name)) for name in range(8)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_over = True
        await asyncio.gather(*self._workers)
        await self._consumer.stop()
        await self._producer.stop()

    async def more_is_confirmed_and_consumed(self, count: int, seconds: float) -> None:
        """Wait until the load flows."""
        confirmed, got = len(self.confirmed), len(self.got)
        await until(lambda: len(self.confirmed) > confirmed + count and len(self.got) > got + count, seconds=seconds)

    async def all_is_consumed(self) -> None:
        self._is_over = True
        await asyncio.gather(*self._workers)
        await until(lambda: self.confirmed <= set(self.got))

    async def _handle(self, message: ReceivedMessage) -> None:
        self.got[message.body] += 1

    async def _work(self, name: int) -> None:
        number = 0
        while not self._is_over:
            body = b"%d-%d" % (name, number)
            try:
                await self._producer.send(Message(TOPIC, body))
            except SendFailed:
                continue
            self.confirmed.add(body)
            number += 1
            await asyncio.sleep(0.004)


@pytest.mark.requirement("A088")
@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGTERM, id="restarted", marks=pytest.mark.slow),
    ],
)
async def test_a_broker_goes_away_under_load_and_nothing_confirmed_is_lost(
    servers: Servers, how: signal.Signals
) -> None:
    async with Load(servers.names) as load:
        await load.more_is_confirmed_and_consumed(200, 40)
        await asyncio.to_thread(servers.end, "broker", how)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(servers.start, "broker")
        await load.more_is_confirmed_and_consumed(200, 60)
        await load.all_is_consumed()


async def test_without_a_name_server_known_topics_go_on_and_new_ones_wait_for_it(servers: Servers) -> None:
    async with Load(servers.names) as load:
        await load.more_is_confirmed_and_consumed(100, 40)
        await asyncio.to_thread(servers.end, "namesrv", signal.SIGKILL)
        await load.more_is_confirmed_and_consumed(400, 40)
        async with Producer("Second", servers.names) as stranger:
            with pytest.raises(NoNameServer, match=r"no name server answered \(127\.0\.0\.1:\d+: "):
                await stranger.send(Message(TOPIC, b"second"))
        await asyncio.to_thread(servers.start, "namesrv")
        await load.more_is_confirmed_and_consumed(100, 40)
        await load.all_is_consumed()
        assert max(load.got.values()) == 1  # nobody came or went, so nothing had to be read again
        async with Admin(servers.names) as admin, Producer("Second", servers.names) as stranger:
            await topic_is_made(admin, "Later")
            await stranger.send(Message("Later", b"second"))


async def topic_is_made(admin: Admin, topic: str) -> None:
    """Brokers come back to a new name server with their next registration."""
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(ClientError):
            await admin.create_topic(topic, 4)
            if await admin.queues(topic):
                return
        assert time.monotonic() < deadline, "no broker came back to the name server"
        await asyncio.sleep(0.5)
