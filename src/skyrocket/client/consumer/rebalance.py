"""Which queues are mine: asked whenever members come or go, and every 20 s.

    sorted queues of the topic + sorted ids of the group ─▶ strategy ─▶ my queues ─▶ `apply`

Every member computes for itself; views may differ for some seconds, hence duplicates but never loss. When queues or
members are not known the assignment stays as it is.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from skyrocket.client.consumer.allocation import AllocationStrategy
from skyrocket.client.consumer.start_position import MessageModel
from skyrocket.client.core.errors import BrokerRefused, ClientError
from skyrocket.client.core.instance import ClientInstance
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.protocol.bodies.connections import ConsumerList
from skyrocket.protocol.requests.consumers import GetConsumerListByGroup
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

WAIT_SECONDS: Final = 20.0
SOON_SECONDS: Final = 1.0
MIN_INTERVAL: Final = 0.2


class Rebalancer:
    """The task that shares queues for one consumer; `apply` gets a topic with its queues, and says if all is well."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        model: MessageModel,
        strategy: AllocationStrategy,
        topics: Callable[[], Iterable[str]],
        apply: Callable[[str, set[MessageQueue]], Awaitable[bool]],
    ) -> None:
        self._instance = instance
        self._group = group
        self._model = model
        self._strategy = strategy
        self._topics = topics
        self._apply = apply
        self._wanted = asyncio.Event()
        self.is_paused = False

    def soon(self) -> None:
        """Something has changed."""
        self._wanted.set()

    async def run(self) -> None:
        """For ever; the first round at once."""
        while True:
            self._wanted.clear()
            seconds = WAIT_SECONDS if await self.round() else SOON_SECONDS
            # Many news at once are one: members join in crowds.
            await asyncio.sleep(MIN_INTERVAL)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):  # not wait_for: in 3.11 it goes on when it is woken and cancelled
                    await self._wanted.wait()

    async def round(self) -> bool:
        """Share every topic's queues once; whether nothing is left to do."""
        if self.is_paused:
            return False
        balanced = True
        for topic in list(self._topics()):
            try:
                balanced = await self._share(topic) and balanced
            except (ClientError, RemotingError) as error:
                balanced = balanced and topic.startswith(RETRY_PREFIX)
                _logger.info("queues were not shared topic=%s group=%s reason=%s", topic, self._group, error)
            except Exception:
                balanced = False
                _logger.exception("queues were not shared topic=%s group=%s", topic, self._group)
        return balanced

    async def _share(self, topic: str) -> bool:
        route = await self._instance.route(topic)
        queues = sorted(route.read_queues)
        if self._model is MessageModel.BROADCASTING:
            return await self._apply(topic, set(queues))
        if not queues:
            return True
        try:
            ids = await self._members(topic)
        except BrokerRefused:  # nobody is in the group: that is what it says then
            ids = ()
        own_id = self._instance.client_id
        if own_id not in ids:
            # The broker does not know us (any more): tell it, and keep what we have until it does.
            await self._instance.beat_all()
            return False
        return await self._apply(topic, set(self._strategy(self._group, own_id, queues, sorted(ids))))

    async def _members(self, topic: str) -> tuple[str, ...]:
        """Who is in the group, as the first broker says that answers; raises RemotingError when none does."""
        request = GetConsumerListByGroup(consumer_group=self._group)
        failure: RemotingError | None = None
        for address in await self._instance.brokers_of(topic):
            try:
                reply = await self._instance.ask(address, request, doing=f"asking who is in group {self._group}")
            except RemotingError as error:
                failure = error
                continue
            return ConsumerList.decode(reply.body).client_ids
        assert failure is not None
        raise failure
