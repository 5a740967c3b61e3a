"""The queues of a topic on all brokers, as the name servers know them; asked again after half a minute."""

import logging
from collections.abc import Sequence
from typing import Final

from skyrocket.broker.state.topics import TopicTable
from skyrocket.clock import Clock
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.permission import PERM_READ
from skyrocket.protocol.bodies.route import TopicRoute
from skyrocket.protocol.errors import RequestError, SystemFailure, TopicNotExist
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

_FRESH_SECONDS: Final = 30.0
_TIMEOUT_SECONDS: Final = 3.0
_MAX_KNOWN: Final = 10_000
_MAX_QUEUES: Final = 100_000  # of one topic on all brokers


class QueueRoutes:
    """A broker without name servers knows its own queues alone."""

    def __init__(
        self,
        client: RemotingClient,
        name_servers: Sequence[str],
        topics: TopicTable,
        broker_name: str,
        clock: Clock,
    ) -> None:
        self._client = client
        self._name_servers = tuple(name_servers)
        self._topics = topics
        self._broker_name = broker_name
        self._clock = clock
        self._known: dict[str, tuple[float, tuple[MessageQueue, ...]]] = {}

    async def of(self, topic: str) -> Sequence[MessageQueue] | None:
        """The readable queues; None when nobody knows the topic; raises SystemFailure for too many."""
        if not self._name_servers:
            return self._own(topic)
        known = self._known.get(topic)
        now = self._clock.monotonic()
        if known is not None and now < known[0]:
            return known[1]
        try:
            route = await self._ask(topic)
        except TopicNotExist:
            self._known.pop(topic, None)
            return None
        if route is None:  # nobody answers: what was true half a minute ago is better than nothing
            return known[1] if known is not None else self._own(topic)
        count = sum(max(data.read_queues, 0) for data in route.queues)
        if count > _MAX_QUEUES:
            raise SystemFailure(f"topic[{topic}] has {count} queues, and {_MAX_QUEUES} at most can be shared out")
        queues = _readable_queues(topic, route)
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[topic] = now + _FRESH_SECONDS, queues
        return queues

    async def _ask(self, topic: str) -> TopicRoute | None:
        for name_server in self._name_servers:
            try:
                reply = await self._client.call(
                    name_server, GetRouteInfoByTopic(topic=topic), timeout_seconds=_TIMEOUT_SECONDS
                )
                return TopicRoute.decode(reply.body)
            except TopicNotExist:
                raise
            except (RemotingError, RequestError) as error:
                _logger.warning("no route topic=%s name_server=%s reason=%s", topic, name_server, error)
        return None

    def _own(self, topic: str) -> tuple[MessageQueue, ...] | None:
        config = self._topics.find(topic)
        if config is None:
            return None
        return tuple(MessageQueue(topic, self._broker_name, number) for number in range(config.read_queues))


def _readable_queues(topic: str, route: TopicRoute) -> tuple[MessageQueue, ...]:
    return tuple(
        MessageQueue(topic, data.broker_name, number)
        for data in route.queues
        if data.permission & PERM_READ
        for number in range(data.read_queues)
    )
