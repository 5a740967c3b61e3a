"""The shared core of a client: connections, routes, heartbeats, and what brokers ask.

    ClientInstance  one per client id and event loop; producers, consumers and admins hold on to it while they run
      ├─ remoting      one connection per address, with back-off          ├─ names     whom to ask for routes
      ├─ routes        topic → queues, refreshed every 30 s               ├─ brokers   name → addresses
      └─ members       groups, told to every broker every 30 s, and at once when a connection is new

Background work is a few tasks; one that fails is logged and goes on. All of it runs on one event loop.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, Final, TypeVar

from skyrocket.client.core.client_id import client_id_of
from skyrocket.client.core.errors import (
    BrokerAbsent,
    BrokerRefused,
    ClientError,
    CredentialsDiffer,
    GroupInUse,
    NameServersDiffer,
    NoRoute,
)
from skyrocket.client.core.members import ConsumerMember, Member, ProducerMember
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.name_servers import LOOKUP_INTERVAL, NameServers
from skyrocket.client.core.names import INNER_PRODUCER_GROUP, TEMPLATE_TOPIC
from skyrocket.client.core.routes import LOGICAL_PREFIX, MASTER_ID, BrokerTable, Route, as_template, route_of
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.core.trouble_log import TroubleLog
from skyrocket.clock import Clock, SystemClock
from skyrocket.errors import SkyrocketError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.protocol.bodies.heartbeat import Heartbeat, ProducerData
from skyrocket.protocol.bodies.route import ClusterInfo, TopicRoute
from skyrocket.protocol.codes import LanguageCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import RequestError, TopicNotExist
from skyrocket.protocol.requests.clients import HeartBeat, UnregisterClient
from skyrocket.protocol.requests.header import Header, Request
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.remoting.addresses import vip
from skyrocket.remoting.client import ClientSettings as RemotingSettings
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.connection import Connection
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.exchange import ONLY_SUCCESS, Reply
from skyrocket.remoting.router import Router
from skyrocket.remoting.tasks import TaskSet

_logger = logging.getLogger(__name__)

A = TypeVar("A", bound=Header)

_FIRST_HEARTBEAT: Final = 1.0
_DOUBT_SECONDS: Final = 0.3
_WATCH_CONNECTIONS: Final = 1.0
_PYTHON: Final = LanguageCode.PYTHON

_instances: dict[tuple[asyncio.AbstractEventLoop, str], "ClientInstance"] = {}


class ClientInstance:
    """What the members of one client share."""

    def __init__(self, settings: ClientSettings, client_id: str, clock: Clock | None = None) -> None:
        self.settings = settings
        self.namespace = settings.effective_namespace()
        self.client_id = client_id
        self.clock = clock or SystemClock()
        self.router = Router(clock=self.clock)
        # Here, because nothing is asked of a client that has not started: importing it should cost little.
        from skyrocket.client.core.server_requests import server_requests

        self.router.add(*server_requests(self))
        self._sign = settings.signer()
        # What every request gets before it leaves.
        self.complete = self._complete if self._sign or settings.namespace_v2 else _complete_language
        self.completes_nothing_but_language = self.complete is _complete_language
        self.remoting = RemotingClient(
            RemotingSettings(connect_seconds=settings.connect_timeout),
            self.router,
            settings.tls,
            self.complete,
            self.clock,
        )
        self.names = NameServers(self.remoting, settings.addresses(), settings.name_server_lookup, settings.unit_name)
        self.brokers = BrokerTable()
        self.troubles = TroubleLog(self.clock.monotonic)
        self.producers: dict[str, ProducerMember] = {}
        self.consumers: dict[str, ConsumerMember] = {}
        self.replies: dict[str, asyncio.Future[ReceivedMessage]] = {}  # by correlation id
        self.routes: dict[str, Route] = {}
        self.tasks = TaskSet()
        self._fetching: dict[str, asyncio.Task[Route]] = {}
        self._doubted: dict[str, float] = {}  # topic ▸ when its route was last asked for because a broker failed
        self._beaten: dict[str, Connection | None] = {}
        self._users = 0

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    async def acquire(
        cls, settings: ClientSettings, *, stable_id: bool = False, clock: Clock | None = None
    ) -> "ClientInstance":
        """The core for these settings, started by its first user; to be released by each."""
        client_id = client_id_of(settings, stable=stable_id)
        key = (asyncio.get_running_loop(), client_id)
        instance = _instances.get(key)
        if instance is None:
            instance = _instances[key] = cls(settings, client_id, clock)
            instance._start()
        elif sorted(settings.addresses()) != sorted(instance.settings.addresses()):
            raise NameServersDiffer(client_id, ";".join(instance.settings.addresses()), ";".join(settings.addresses()))
        elif (settings.credentials, settings.sign) != (instance.settings.credentials, instance.settings.sign):
            raise CredentialsDiffer(client_id)
        instance._users += 1
        return instance

    async def release(self) -> None:
        """The last user closes it."""
        self._users -= 1
        if self._users > 0:
            return
        _instances.pop((asyncio.get_running_loop(), self.client_id), None)
        await self.tasks.cancel()
        await self.remoting.close()

    def _start(self) -> None:
        self.every(self.settings.route_refresh, self.refresh_routes, "refresh routes")
        self.every(self.settings.heartbeat_interval, self._beat_regularly, "heartbeat", first=_FIRST_HEARTBEAT)
        self.every(_WATCH_CONNECTIONS, self._watch_connections, "watch connections")
        if self.names.lookup_url:
            self.every(LOOKUP_INTERVAL, self.names.look_up, "look up name servers")

    def every(
        self, seconds: float, work: Callable[[], Awaitable[None]], name: str, *, first: float | None = None
    ) -> "asyncio.Task[None]":
        """Repeat for as long as the core lives; a failure is logged and the next round tried."""
        return self.tasks.start(_repeat(seconds, work, name, seconds if first is None else first), name)

    # ── members ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def join_producer(self, member: ProducerMember) -> None:
        """Raises GroupInUse."""
        if member.group in self.producers:
            raise GroupInUse("producer", member.group, self.client_id)
        self.producers[member.group] = member

    def join_consumer(self, member: ConsumerMember) -> None:
        """Raises GroupInUse."""
        if member.group in self.consumers:
            raise GroupInUse("consumer", member.group, self.client_id)
        self.consumers[member.group] = member

    def members(self) -> list[Member]:
        """All that use this core, but admins."""
        return [*self.producers.values(), *self.consumers.values()]

    async def leave_producer(self, group: str) -> None:
        """Tell brokers that a producer is gone."""
        if self.producers.pop(group, None) is not None:
            await self._unregister(UnregisterClient(client_id=self.client_id, producer_group=group))

    async def leave_consumer(self, group: str) -> None:
        """Tell brokers that a consumer is gone: the others share its queues."""
        if self.consumers.pop(group, None) is not None:
            await self._unregister(UnregisterClient(client_id=self.client_id, consumer_group=group))

    async def _unregister(self, request: UnregisterClient) -> None:
        # Only where we are known: a connection that is gone has already said goodbye.
        connected = [address for address in self.brokers.all() if self.remoting.connection(address) is not None]
        await asyncio.gather(*(self._quietly(address, request) for address in connected))

    async def _quietly(self, address: str, request: Request[Any]) -> None:
        try:
            await self.remoting.call(address, request, timeout_seconds=self.settings.api_timeout)
        except (RequestError, RemotingError) as error:
            _logger.info("goodbye was not heard broker=%s reason=%s", address, error)

    # ── heartbeats ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def beat_all(self) -> bool:
        """Tell every broker who we are; whether one of them heard it."""
        if not self.producers and not self.consumers:
            return False
        addresses = self.brokers.all(masters_only=not self.consumers)
        if not addresses and self.consumers:
            addresses = await self._any_masters()
        return any(await asyncio.gather(*(self.beat(address) for address in addresses)))

    async def _any_masters(self) -> list[str]:
        """For consumers none of whose topics is there: brokers must know of them, or no operator ever sees them."""
        from skyrocket.protocol.requests.name_server import GetBrokerClusterInfo  # few clients need it

        try:
            reply = await self.names.call(GetBrokerClusterInfo(), timeout=self.settings.api_timeout)
        except (ClientError, RequestError, RemotingError) as error:
            _logger.info("no broker was found for a heartbeat reason=%s", error)
            return []
        brokers = ClusterInfo.decode(reply.body).brokers.values()
        return [each.addresses[MASTER_ID] for each in brokers if MASTER_ID in each.addresses]

    async def beat(self, address: str) -> bool:
        """Tell one broker who we are."""
        if not self.producers and not self.consumers:
            return False
        heartbeat = Heartbeat(
            self.client_id,
            (*(ProducerData(group) for group in self.producers), ProducerData(INNER_PRODUCER_GROUP)),
            tuple(member.heartbeat_data() for member in self.consumers.values()),
        )
        try:
            await self.remoting.call(
                address, HeartBeat(), heartbeat.encode(), timeout_seconds=self.settings.api_timeout
            )
        except (RequestError, RemotingError) as error:
            _logger.info("heartbeat failed broker=%s reason=%s", address, error)
            return False
        self._beaten[address] = self.remoting.connection(address)
        return True

    async def _beat_regularly(self) -> None:
        self.brokers.keep_only(route.data for route in self.routes.values())
        await self.beat_all()

    async def _watch_connections(self) -> None:
        """A new connection is unknown to its broker until a heartbeat came over it."""
        for address in self.brokers.all(masters_only=not self.consumers):
            is_stranger = not self.is_known_to(address) and self.remoting.connection(address) is not None
            if is_stranger and await self.beat(address):
                for member in list(self.consumers.values()):
                    member.rebalance_soon()

    def is_known_to(self, address: str) -> bool:
        """Whether a broker has heard of us over the connection that is open."""
        connection = self.remoting.connection(address)
        return connection is not None and self._beaten.get(address) is connection

    async def introduce(self, topic: str) -> None:
        """Let all brokers of a topic know who we are: they may have to ask or tell us something soon."""
        for address in await self.brokers_of(topic):
            if not self.is_known_to(address):
                await self.beat(address)

    async def introduce_to(self, broker_names: Iterable[str]) -> None:
        """The same for the masters of these, whatever topics they have."""
        for name in broker_names:
            found = self.brokers.replica(name, MASTER_ID)
            if found is not None and not self.is_known_to(found[0]):
                await self.beat(found[0])

    # ── routes ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def route(self, topic: str, *, fresh: bool = False) -> Route:
        """Where a topic is; raises NoRoute or NoNameServer."""
        known = self.routes.get(topic)
        return known if known is not None and not fresh else await self._fetch_once(topic)

    async def _fetch_once(self, topic: str) -> Route:
        """Whoever needs the same route at the same time waits for the same answer."""
        task = self._fetching.get(topic)
        if task is None:
            task = self._fetching[topic] = self.tasks.start(self._fetch(topic), f"route of {topic}")
            task.add_done_callback(lambda done: (self._fetching.pop(topic, None), done.cancelled() or done.exception()))
        return await asyncio.shield(task)

    async def _fetch(self, topic: str) -> Route:
        request = GetRouteInfoByTopic(topic=topic, accept_standard_json_only=True)
        try:
            reply = await self.names.call(request, timeout=self.settings.api_timeout)
        except TopicNotExist as error:
            raise NoRoute(topic, str(self.names), error.remark) from None
        route = route_of(topic, TopicRoute.decode(reply.body))
        self.brokers.learn(route.data)
        if route != self.routes.get(topic):
            self.routes[topic] = route
            for producer in list(self.producers.values()):
                producer.route_changed(topic, route)
        return route

    async def template_route(self, topic: str, most_queues: int) -> Route:
        """The route that a topic will have once the first message created it; raises NoRoute."""
        try:
            template = await self._fetch_once(TEMPLATE_TOPIC)
        except NoRoute as error:
            raise NoRoute(topic, str(self.names)) from error
        return route_of(topic, as_template(template.data, most_queues))

    async def refresh_routes(self) -> None:
        """Ask again for every topic that a member uses."""
        for topic in {topic for member in self.members() for topic in member.topics}:
            await self.refresh_route(topic)

    async def refresh_route(self, topic: str) -> None:
        """Ask again for one."""
        try:
            await self._fetch_once(topic)
        except NoRoute as error:
            if not topic.startswith(RETRY_PREFIX) and topic in self.routes:
                _logger.warning("a topic has no route any more topic=%s reason=%s", topic, error)

    def doubt(self, topic: str) -> None:
        """A broker of this topic failed, another one may be master: its route is asked for at once, but seldom."""
        now = self.clock.monotonic()
        if now - self._doubted.get(topic, now - _DOUBT_SECONDS) >= _DOUBT_SECONDS:
            self._doubted[topic] = now
            self.tasks.start(self._settle_doubt(topic), f"doubted route of {topic}")

    async def _settle_doubt(self, topic: str) -> None:
        try:
            await self.refresh_route(topic)
        except ClientError as error:
            _logger.info("a doubted route could not be asked for topic=%s reason=%s", topic, error)

    # ── asking brokers ───────────────────────────────────────────────────────────────────────────────────────────────

    def leader(self, queue: MessageQueue) -> str:
        """The name of the broker that has a queue; another one than the queue says only for static topics."""
        if not queue.broker_name.startswith(LOGICAL_PREFIX):
            return queue.broker_name
        route = self.routes.get(queue.topic)
        return queue.broker_name if route is None else route.leaders.get(queue, queue.broker_name)

    async def master_of(self, queue: MessageQueue) -> str:
        """The address to ask about a queue; raises BrokerAbsent, NoRoute or NoNameServer."""
        address = self.brokers.master(self.leader(queue))
        if address is None:
            await self.route(queue.topic, fresh=True)
            address = self.brokers.master(self.leader(queue))
        if address is None:
            raise BrokerAbsent(queue.broker_name, queue.topic)
        return address

    async def brokers_of(self, topic: str) -> list[str]:
        """One address of each broker that has the topic, masters first; raises BrokerAbsent, NoRoute, NoNameServer."""
        route = await self.route(topic)
        found = [self.brokers.replica(broker.broker_name, MASTER_ID) for broker in route.data.brokers]
        known = sorted((each for each in found if each is not None), key=lambda each: each[1] != MASTER_ID)
        if not known:
            raise BrokerAbsent("(any)", topic, "address")
        return [address for address, _ in known]

    async def any_broker_of(self, topic: str) -> str:
        """Some broker that has the topic; raises the same."""
        return (await self.brokers_of(topic))[0]

    async def ask(
        self,
        address: str,
        request: Request[A],
        body: bytes = b"",
        *,
        doing: str,
        timeout: float | None = None,
        accepted: Collection[int] = ONLY_SUCCESS,
    ) -> Reply[A]:
        """Ask a broker; raises BrokerRefused with what was tried in words, or RemotingError."""
        if self.settings.vip_channel:
            address = vip(address)
        seconds = self.settings.api_timeout if timeout is None else timeout
        try:
            return await self.remoting.call(address, request, body, timeout_seconds=seconds, accepted=accepted)
        except RequestError as error:
            raise BrokerRefused(address, error, doing) from error

    def _complete(self, _: str, command: RemotingCommand) -> None:
        command.language = _PYTHON
        fields = command.ext_fields
        if self.settings.namespace_v2:
            fields = command.ext_fields = fields if fields is not None else {}
            fields["nsd"] = "true"
            fields["ns"] = self.settings.namespace_v2
        if self._sign is not None:
            self._sign(command)


def _forked() -> None:
    """Sockets and ids belong to the parent: what the child has inherited must not be used."""
    for instance in _instances.values():
        for member in instance.members():
            member.forked()
    _instances.clear()


os.register_at_fork(after_in_child=_forked)


def _complete_language(_: str, command: RemotingCommand) -> None:
    command.language = _PYTHON


async def _repeat(seconds: float, work: Callable[[], Awaitable[None]], name: str, first: float) -> None:
    await asyncio.sleep(first)
    while True:
        try:
            await work()
        except SkyrocketError as error:
            _logger.warning("%s failed, will be tried again reason=%s", name, error)
        except Exception:
            _logger.exception("%s failed, will be tried again", name)
        await asyncio.sleep(seconds)
