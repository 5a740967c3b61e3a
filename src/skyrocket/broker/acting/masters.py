"""The masters of other sets, as the name servers know them; asked again after half a minute, and after a failure."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from skyrocket.clock import Clock
from skyrocket.errors import DataError
from skyrocket.model.permission import PERM_WRITE
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.protocol.bodies.route import BrokerData, ClusterInfo, TopicRoute
from skyrocket.protocol.errors import RequestError, TopicNotExist
from skyrocket.protocol.requests.header import Request
from skyrocket.protocol.requests.name_server import GetBrokerClusterInfo
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

_FRESH_SECONDS: Final = 30.0
_TIMEOUT_SECONDS: Final = 3.0
_MOST_KNOWN: Final = 1000
_MASTER_ID: Final = 0


@dataclass(frozen=True, slots=True)
class RemoteQueue:
    """A queue that takes messages."""

    broker_name: str
    address: str
    queue_id: int


class Masters:
    """Where messages can be sent that this set must not take."""

    def __init__(
        self, client: RemotingClient, name_servers: Sequence[str], cluster: str, own_name: str, clock: Clock
    ) -> None:
        self._client = client
        self._name_servers = tuple(name_servers)
        self._cluster = cluster
        self._own_name = own_name
        self._clock = clock
        self._queues: dict[str, tuple[float, tuple[RemoteQueue, ...]]] = {}
        self._brokers: dict[str, str] = {}  # where each set is read from

    async def queues(self, topic: str) -> Sequence[RemoteQueue]:
        """The queues of a topic at masters of other sets; empty when there is none, or nobody answers."""
        known = self._queues.get(topic)
        now = self._clock.monotonic()
        if known is not None and now < known[0]:
            return known[1]
        route = await self._route(topic)
        queues = () if route is None else self._writable(route)
        if not queues and topic.startswith(RETRY_PREFIX):
            queues = await self._of_any_master()  # a broker makes a retry topic when it is first sent to
        if queues:
            if len(self._queues) >= _MOST_KNOWN:
                self._queues.clear()
            self._queues[topic] = now + _FRESH_SECONDS, queues
        return queues

    async def address_of(self, broker_name: str, topic: str) -> str | None:
        """Where messages of a set are read: at its master, or who stands in for it."""
        known = self._brokers.get(broker_name)
        if known is None:
            route = await self._route(topic)
            for broker in route.brokers if route is not None else ():
                if broker.broker_name == broker_name and broker.addresses:
                    known = self._brokers[broker_name] = broker.addresses[min(broker.addresses)]
        return known

    def doubt(self, address: str) -> None:
        """Somebody did not answer: ask the name servers again."""
        self._brokers = {name: known for name, known in self._brokers.items() if known != address}
        for topic, (_, queues) in list(self._queues.items()):
            if any(queue.address == address for queue in queues):
                del self._queues[topic]

    def _writable(self, route: TopicRoute) -> tuple[RemoteQueue, ...]:
        masters = _masters(route.brokers)
        return tuple(
            RemoteQueue(data.broker_name, masters[data.broker_name], number)
            for data in sorted(route.queues, key=lambda data: data.broker_name)
            if data.broker_name in masters and data.broker_name != self._own_name and data.permission & PERM_WRITE
            for number in range(data.write_queues)
        )

    async def _of_any_master(self) -> tuple[RemoteQueue, ...]:
        body = await self._ask(GetBrokerClusterInfo())
        if body is None:
            return ()
        info = ClusterInfo.decode(body)
        here = [info.brokers[name] for name in info.clusters.get(self._cluster, ()) if name in info.brokers]
        masters = sorted(_masters(here).items())
        return tuple(RemoteQueue(name, address, 0) for name, address in masters if name != self._own_name)

    async def _route(self, topic: str) -> TopicRoute | None:
        body = await self._ask(GetRouteInfoByTopic(topic=topic))
        return None if body is None else TopicRoute.decode(body)

    async def _ask(self, request: Request[Any]) -> bytes | None:
        for name_server in self._name_servers:
            try:
                return bytes((await self._client.call(name_server, request, timeout_seconds=_TIMEOUT_SECONDS)).body)
            except TopicNotExist:
                return None
            except (RemotingError, RequestError, DataError) as error:
                _logger.warning("no answer name_server=%s reason=%s", name_server, error)
        return None


def _masters(brokers: Sequence[BrokerData]) -> dict[str, str]:
    return {broker.broker_name: broker.addresses[_MASTER_ID] for broker in brokers if _MASTER_ID in broker.addresses}
