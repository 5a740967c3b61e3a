"""What every kind of administration needs: a started client, and whom to ask."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

from skyrocket.client.admin.places import BrokerPlace, places_in
from skyrocket.client.core.errors import BrokerRefused, NoRoute, NotOffered, PartlyFailed, TooOld
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.lifecycle import Startable, State
from skyrocket.client.core.names import unwrap, wrap
from skyrocket.client.core.routes import MASTER_ID, Route
from skyrocket.client.core.settings import Acl, ClientSettings, settings_of
from skyrocket.errors import SkyrocketError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.route import ClusterInfo
from skyrocket.protocol.errors import RequestError, RequestNotSupported
from skyrocket.protocol.requests.header import Header, Request
from skyrocket.protocol.requests.name_server import GetBrokerClusterInfo
from skyrocket.remoting.errors import CallTimeout
from skyrocket.remoting.exchange import ONLY_SUCCESS, Reply

_SILENT_SECONDS: Final = 1.0  # what one who let a question wait has for the next

A = TypeVar("A", bound=Header)
T = TypeVar("T")


class NotAskedAgain(CallTimeout):
    """It let a question wait before, and nobody waits for it a second time; the request was not sent."""


def news_of(failed: Mapping[str, Exception], known: Mapping[str, Exception]) -> dict[str, Exception]:
    """Failures by broker, without those that say nothing beside the one that is known: how long it was waited for."""
    return {
        where: error for where, error in failed.items() if where not in known or not isinstance(error, NotAskedAgain)
    }


class AdminCalls(Startable):
    """Started and stopped as one; asks name servers and masters."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = "",
        *,
        client: ClientSettings | None = None,
        credentials: Acl | None = None,
        timeout: float = 5.0,
        tolerant: bool = False,
        silent: set[str] | None = None,
    ) -> None:
        """`tolerant`: while one broker does what all were asked, those that fail are kept in `failures`, not raised.

        One that hangs costs such an admin `timeout` once, not for each of its questions: it has a second for the next.
        `silent`: of admins that share one piece of work: who let a question of any of them wait is not asked again.
        """
        self._client = settings_of(client, name_servers, credentials)
        self._namespace = self._client.effective_namespace()
        self._timeout = timeout
        self._tolerant = tolerant
        self.failures: dict[str, Exception] = {}  # by broker; of a tolerant admin
        self._asks_again = silent is None
        self._silent = set() if silent is None else silent  # addresses that let the last question wait
        self._instance: ClientInstance

    def __repr__(self) -> str:
        return "admin"

    @property
    def settings(self) -> ClientSettings:
        """How it finds its cluster: for a producer or consumer beside it."""
        return self._client

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

    async def brokers(
        self, *, cluster: str | None = None, broker: str | None = None, with_slaves: bool = True
    ) -> list[BrokerPlace]:
        """Those of a cluster, or of one name or address, or all; raises NotFound, or ClientError when there is none."""
        return await self._places(cluster, broker, with_slaves=with_slaves)

    async def _places(
        self, cluster: str | None, broker: str | None = None, *, with_slaves: bool = False
    ) -> list[BrokerPlace]:
        if broker is not None and ":" in broker:  # an address: asked itself, whether name servers know it or not
            self._check_running()
            return [BrokerPlace("", "", MASTER_ID, broker)]
        info = await self.cluster()
        return places_in(info, str(self._instance.names), cluster=cluster, broker=broker, with_slaves=with_slaves)

    def _name_server_places(self) -> list[BrokerPlace]:
        return [BrokerPlace("", "", MASTER_ID, address) for address in self._instance_of().names.addresses]

    async def _named_masters(self, cluster: str | None, broker: str | None = None) -> dict[str, str]:
        return {place.broker_name: place.address for place in await self._places(cluster, broker)}

    async def _each(
        self, places: Sequence[BrokerPlace], ask: Callable[[BrokerPlace], Awaitable[T]]
    ) -> dict[BrokerPlace, T]:
        """Ask several at once; raises PartlyFailed when some of them fail, unless this admin tolerates it."""
        done: dict[BrokerPlace, T] = {}
        failed: dict[str, Exception] = {}

        async def hear(place: BrokerPlace) -> None:
            try:
                done[place] = await ask(place)
            except SkyrocketError as error:
                failed[str(place)] = error

        for ended in await asyncio.gather(*map(hear, places), return_exceptions=True):
            if ended is not None:
                raise ended
        in_order = {place: done[place] for place in places if place in done}
        return self._settled(in_order, {str(place): failed[str(place)] for place in places if str(place) in failed})

    def _settled(self, done: dict[BrokerPlace, T], failed: Mapping[str, Exception]) -> dict[BrokerPlace, T]:
        """What brokers answered; raises the failure of all, or PartlyFailed unless this admin tolerates it."""
        if failed and not done:
            raise next(iter(failed.values()))
        if failed and not self._tolerant:
            raise PartlyFailed(done, failed)
        self.failures.update(news_of(failed, self.failures))
        return done

    def _instance_of(self) -> ClientInstance:
        self._check_running()
        return self._instance

    async def _names(self, request: Request[A]) -> Reply[A]:
        self._check_running()
        try:
            return await self._instance.names.call(request, timeout=self._timeout)
        except RequestError as error:
            raise BrokerRefused(str(self._instance.names), error, type(request).__name__) from error

    async def _ask(
        self,
        address: str,
        request: Request[A],
        body: bytes = b"",
        *,
        doing: str,
        accepted: Collection[int] = ONLY_SUCCESS,
    ) -> Reply[A]:
        instance = self._instance_of()

        def ask(seconds: float) -> Awaitable[Reply[A]]:
            return instance.ask(address, request, body, doing=doing, timeout=seconds, accepted=accepted)

        return await self._heard(address, ask)

    async def _ask_master(self, full: MessageQueue, ask: Callable[[float], Awaitable[T]]) -> T:
        return await self._heard(await self._instance_of().master_of(full), ask)

    async def _heard(self, address: str, ask: Callable[[float], Awaitable[T]]) -> T:
        """An answer in so many seconds, few or none for who let a question wait before; raises CallTimeout."""
        is_silent = address in self._silent
        if is_silent and not self._asks_again:
            raise NotAskedAgain(address, "it did not answer before, and was not asked again")
        try:
            answer = await ask(min(self._timeout, _SILENT_SECONDS) if is_silent else self._timeout)
        except CallTimeout:
            if self._tolerant:
                self._silent.add(address)
            raise
        self._silent.discard(address)
        return answer

    async def _since_5(self, place: BrokerPlace, request: Request[A], doing: str, body: bytes = b"") -> Reply[A]:
        """Ask what RocketMQ 4.x does not know; raises TooOld there."""
        try:
            return await self._ask(place.address, request, body, doing=doing)
        except BrokerRefused as error:
            cause = error.__cause__
            if isinstance(cause, RequestNotSupported):
                raise TooOld(place.address, cause, doing) from error
            raise

    async def _ours(self, address: str, request: Request[A], doing: str, instead: str, body: bytes = b"") -> Reply[A]:
        """Ask what Apache's brokers do not know; raises NotOffered there."""
        try:
            return await self._ask(address, request, body, doing=doing)
        except BrokerRefused as error:
            cause = error.__cause__
            if isinstance(cause, RequestNotSupported):
                raise NotOffered(address, cause, doing, instead) from error
            raise

    async def _places_of(self, topic: str) -> list[BrokerPlace]:
        route = await self._instance_of().route(topic, fresh=True)
        masters = [
            BrokerPlace(broker.cluster or "", broker.broker_name, MASTER_ID, broker.addresses[MASTER_ID])
            for broker in route.data.brokers
            if MASTER_ID in broker.addresses
        ]
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
