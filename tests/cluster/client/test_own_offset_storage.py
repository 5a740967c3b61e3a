"""Offsets that the application keeps itself, and offsets that the broker must confirm."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from skyrocket.client import OffsetStorage
from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.core.message import Message
from skyrocket.client.producer.producer import Producer
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.peer import Peer
from tests.cluster.client.push_consumers import FIRST, GROUP, TOPIC, send
from tests.cluster.servers import Cluster, cluster
from tests.waiting import until


class Notebook(OffsetStorage):
    """Offsets in memory; fails when it is told to."""

    def __init__(self) -> None:
        self.offsets: dict[tuple[str, MessageQueue], int] = {}
        self.failures = 0

    async def load(self, group: str, queue: MessageQueue) -> int | None:
        self._fail()
        return self.offsets.get((group, queue))

    async def save(self, group: str, offsets: Mapping[MessageQueue, int]) -> None:
        self._fail()
        self.offsets.update({(group, queue): offset for queue, offset in offsets.items()})

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("the notebook is closed")

    def total(self) -> int:
        return sum(offset for (_, queue), offset in self.offsets.items() if queue.topic == TOPIC)


@pytest.mark.requirement("C169")
async def test_a_group_goes_on_where_its_own_storage_says(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    notebook, got = Notebook(), list[bytes]()

    def member(given: Cluster) -> PushConsumer:
        settings = PushConsumerSettings(consume_from=FIRST, persist_interval=0.05)
        consumer = PushConsumer(GROUP, given.names, settings, offset_storage=notebook)
        consumer.subscribe(TOPIC, lambda message: got.append(message.body))
        return consumer

    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 8)
        async with member(given):
            await until(lambda: len(got) == 8)
            notebook.failures = 2  # a save that failed is made good by the next one
            await until(lambda: notebook.total() == 8 and not notebook.failures)
        assert "offsets were not saved by the offset storage" in caplog.text
        # The broker's offsets do not count: it is made to believe that nothing was consumed.
        for queue_id in range(4):
            given.brokers["broker-a"].tables.offsets.commit(GROUP, TOPIC, queue_id, 0)
        await producer.send(Message(TOPIC, b"new"))
        notebook.failures = 3  # queues wait until their offsets are known
        async with member(given):
            await until(lambda: len(got) > 8)
            await asyncio.sleep(0.1)
        assert got[8:] == [b"new"]


@pytest.mark.requirement("A084")
async def test_a_commit_that_is_waited_for_is_sent_again_when_no_answer_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skyrocket.client.consumer.remote_offsets._TIMEOUT", 0.3)
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 4)
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(persist_interval=3600))
        consumer.subscribe(TOPIC, lambda message: None)
        async with consumer:
            await until(lambda: len(consumer.assignment) == 5)
            route = given.route(RequestCode.UPDATE_CONSUMER_OFFSET)
            own, asked = route.handler, list[bool]()

            def deaf_at_first(peer: Peer, request: RemotingCommand) -> Outcome:
                asked.append(request.is_oneway)
                return own(peer, request) if len(asked) > 2 else None

            route.handler = deaf_at_first
            await consumer.commit_offset(MessageQueue(TOPIC, "broker-a", 1), 77)
            assert asked == [False, False, False]
            assert given.brokers["broker-a"].tables.offsets.committed(GROUP, TOPIC, 1) == 77
            route.handler = own
