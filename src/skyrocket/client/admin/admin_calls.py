"""What every kind of administration needs: a started client, and whom to ask."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from skyrocket.client.core.errors import BrokerRefused, ClientError, NoRoute, WrongUse
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.lifecycle import Startable, State
from skyrocket.client.core.names import unwrap, wrap
from skyrocket.client.core.routes import MASTER_ID, Route
from skyrocket.client.core.settings import Acl, ClientSettings, settings_of
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.route import ClusterInfo
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.header import Header, Request
from skyrocket.protocol.requests.name_server import GetBrokerClusterInfo
from skyrocket.remoting.exchange import Reply

A = TypeVar("A", bound=Header)


class AdminCalls(Startable):
    """Started and stopped as one; asks name servers and masters."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = "",
        *,
        client: ClientSettings | None = None,
        credentials: Acl | None = None,
        timeout: float = 5.0,
    ) -> None:
        self._client = settings_of(client, name_servers, credentials)
        self._namespace = self._client.effective_namespace()
        self._timeout = timeout
        self._instance: ClientInstance

    def __repr__(self) -> str:
        return "admin"

    async def start(self) -> None:
        """Raises AlreadyStarted or NoNameServer."""
        self._check_new()
        self._instance = await ClientInstance.acquire(self._client)
        self._state = State.RUNNING

    async def stop(self) -> None:
        """May be called again."""
        if self._state is State.RUNNING:
            self._state = State.STOPPED
            await self._instance.release()

    async def cluster(self) -> ClusterInfo:
        """All brokers with their addresses."""
        return ClusterInfo.decode((await self._names(GetBrokerClusterInfo())).body)

    async def route(self, topic: str) -> Route:
        """Where a topic is; raises NoRoute."""
        self._check_running()
        return await self._instance.route(self._full(topic), fresh=True)

    async def _masters(self, cluster: str | None, broker: str | None = None) -> list[str]:
        return list((await self._named_masters(cluster, broker)).values())

    async def _named_masters(self, cluster: str | None, broker: str | None = None) -> dict[str, str]:
        info = await self.cluster()
        if cluster is not None and cluster not in info.clusters:
            raise WrongUse(f"cluster {cluster} is not known; there are {', '.join(sorted(info.clusters)) or 'none'}")
        wanted = set(info.brokers) if cluster is None else set(info.clusters[cluster])
        if broker is not None:
            wanted &= {broker}
        masters = {
            name: data.addresses[MASTER_ID]
            for name, data in sorted(info.brokers.items())
            if name in wanted and MASTER_ID in data.addresses
        }
        if not masters:
            raise ClientError(
                f"no broker with a master is registered at {self._instance.names}"
                + (f" under the name {broker}" if broker else "")
                + ": start one, or check the names"
            )
        return masters

    def _instance_of(self) -> ClientInstance:
        self._check_running()
        return self._instance

    async def _names(self, request: Request[A]) -> Reply[A]:
        self._check_running()
        try:
            return await self._instance.names.call(request, timeout=self._timeout)
        except RequestError as error:
            raise BrokerRefused(str(self._instance.names), error, type(request).__name__) from error

    async def _ask(self, address: str, request: Request[A], body: bytes = b"", *, doing: str) -> Reply[A]:
        return await self._instance_of().ask(address, request, body, doing=doing, timeout=self._timeout)

    async def _masters_of(self, topic: str) -> list[str]:
        route = await self._instance_of().route(topic, fresh=True)
        found = [self._instance.brokers.master(broker.broker_name) for broker in route.data.brokers]
        masters = [address for address in found if address is not None]
        if not masters:
            raise NoRoute(topic, str(self._instance.names), "none of its brokers has a master")
        return masters

    def _full(self, topic: str) -> str:
        return wrap(self._namespace, topic)

    def _full_queue(self, queue: MessageQueue) -> MessageQueue:
        return queue._replace(topic=self._full(queue.topic))

    def _shown(self, queue: MessageQueue) -> MessageQueue:
        return queue._replace(topic=unwrap(self._namespace, queue.topic))


def moment_ms(moment: datetime | float) -> int:
    """A moment, given as a date or as seconds since 1970."""
    seconds = moment.timestamp() if isinstance(moment, datetime) else moment
    return round(seconds * 1000)
