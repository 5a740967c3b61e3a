"""Makes a broker known to its name servers: at the start, every 30 s, and at once when a topic has changed.

A registration always has all topics. RocketMQ announces a changed topic by a registration of that topic alone, and a
name server with `deleteTopicWithBrokerRegistration` then forgets all others until the next one. Where brokers have so
many topics that this costs too much, `enableSingleTopicRegister` tells of the changed ones alone with
REGISTER_TOPIC_IN_NAMESRV.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from skyrocket.broker.state.broker_set import BrokerSet
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.topics import TopicTable
from skyrocket.model.permission import PERM_READ, PERM_WRITE
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.registration import BrokerRegistration, body_crc
from skyrocket.protocol.bodies.route import QueueData, TopicRoute
from skyrocket.protocol.bodies.tables import KvTable
from skyrocket.protocol.bodies.topics import TopicTable as RegisteredTopics
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat, RegisterBroker, UnregisterBroker
from skyrocket.protocol.requests.name_server import RegisterTopicInNamesrv
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

_UNREGISTER_SECONDS: Final = 3.0
_TOLD_SECONDS: Final = 2.0  # that whoever changes a topic waits at most; operators' tools give up after 3 s and more
_BEAT_SECONDS: Final = 1.0
_LOOKING_SECONDS: Final = 3.0  # between two registrations of a slave that does not know where its master is
_MOST_SINGLE: Final = 100  # topics that are told one by one
_REST_PER_WORK: Final = 10  # so much longer than it took to write a registration the next change waits
_LONG_REST_SECONDS: Final = 0.5
_LITTLE_WORK_SECONDS: Final = 0.02  # of writing one, after which nobody waits: some thousand topics
_READ_WRITE: Final = PERM_READ | PERM_WRITE


class Heartbeats(NamedTuple):
    """Of a broker whose slave acts as master: name servers must notice soon that it is gone."""

    interval_seconds: float
    expiry_ms: int


class Registration:
    """Tells every name server; they know nothing of each other."""

    def __init__(
        self,
        client: RemotingClient,
        name_servers: Sequence[str],
        identity: BrokerIdentity,
        topics: TopicTable,
        broker_set: BrokerSet,
        *,
        period_seconds: float = 30.0,
        timeout_seconds: float = 24.0,
        heartbeats: Heartbeats | None = None,
    ) -> None:
        self._client = client
        self.name_servers = tuple(dict.fromkeys(name_servers))
        self._identity = identity
        self._topics = topics
        self._set = broker_set
        self.period_seconds = period_seconds
        self.permission = _READ_WRITE  # of the broker itself
        self._timeout_seconds = timeout_seconds
        self._heartbeats = heartbeats
        self.heard_by = 0  # name servers that took the last registration
        self.tells_single_topics = False
        self._changed: dict[str, TopicConfig] = {}
        self._wake = asyncio.Event()
        self._rests_until = 0.0  # of the loop's clock
        self._all_changed = False
        self._waiting: list[asyncio.Future[None]] = []  # who wants to know when the changes up to now are told
        topics.on_change(self._topics_changed)
        broker_set.on_ask(self._wake.set)  # the answer to a registration names the master

    def _topics_changed(self, configs: Sequence[TopicConfig]) -> None:
        self._changed.update((config.name, config) for config in configs)
        self._wake.set()

    def telling(self) -> "asyncio.Future[None]":
        """Done when the name servers have heard of what has changed up to now, or could not; it is not for long.

        While a rest is long nobody waits: thousands of topics that are made one after the other would take hours.
        """
        loop = asyncio.get_running_loop()
        told: asyncio.Future[None] = loop.create_future()
        self._wake.set()
        if self._rests_until - loop.time() > _LONG_REST_SECONDS:
            told.set_result(None)
        else:
            self._waiting.append(told)
            loop.call_later(_TOLD_SECONDS, _end_wait, told)
        return told

    def permission_changed(self, permission: int) -> None:
        """Tell of all topics, at once: what the broker does not allow is missing from each."""
        self.permission = permission
        self._all_changed = True
        self._wake.set()

    async def run(self) -> None:
        """Register until cancelled; changes in between are told at once, many of them together."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):  # not wait_for: 3.11's loses cancellations
                    await self._wake.wait()
                await asyncio.sleep(self._rests_until - asyncio.get_running_loop().time())
            changed = {} if self._all_changed or not self.tells_single_topics else self._changed
            self._wake.clear()
            self._changed, self._all_changed = {}, False
            waiting, self._waiting = self._waiting, []
            try:
                if not 0 < len(changed) <= _MOST_SINGLE or not await self._tell(changed):
                    await self.register()
            finally:
                for told in waiting:
                    _end_wait(told)

    def _pause(self) -> float:
        return min(self.period_seconds, _LOOKING_SECONDS) if self._set.is_looking else self.period_seconds

    async def register(self) -> int:
        """Tell all name servers of all topics; returns how many have heard it."""
        began = time.thread_time()  # what the loop did not have for others, however busy the machine is
        chosen = self._allowed(self._topics.topics)
        body = BrokerRegistration(RegisteredTopics(self._topics.data_version, chosen)).encode()
        worked = time.thread_time() - began
        rest = worked * _REST_PER_WORK if worked > _LITTLE_WORK_SECONDS else 0.0
        self._rests_until = asyncio.get_running_loop().time() + rest
        outcomes = await asyncio.gather(*(self._register_at(address, body) for address in self.name_servers))
        self.heard_by = sum(outcomes)
        if self.heard_by:
            self._topics.announced(tuple(chosen.values()))
        return self.heard_by

    async def _tell(self, topics: Mapping[str, TopicConfig]) -> bool:
        """Tell all name servers of these topics alone; False when one has not understood, or not heard."""
        told = self._allowed(topics)
        outcomes = await asyncio.gather(
            *(self._tell_at(address, topic) for address in self.name_servers for topic in told.values())
        )
        if all(outcomes):
            self._topics.announced(tuple(told.values()))
        return all(outcomes)

    async def _tell_at(self, name_server: str, topic: TopicConfig) -> bool:
        name = self._identity.broker_name
        queues = QueueData(name, topic.read_queues, topic.write_queues, topic.permission, topic.sys_flag)
        request = RegisterTopicInNamesrv(topic=topic.name)
        body = TopicRoute(queues=(queues,)).encode()
        try:
            await self._client.call(name_server, request, body, timeout_seconds=self._timeout_seconds)
        except (RemotingError, RequestError) as error:
            _logger.warning("a topic was not told alone name_server=%s topic=%s reason=%s", name_server, topic, error)
            return False
        return True

    def _allowed(self, topics: Mapping[str, TopicConfig]) -> dict[str, TopicConfig]:
        if self.permission & _READ_WRITE == _READ_WRITE:
            return dict(topics)
        return {name: replace(topic, permission=topic.permission & self.permission) for name, topic in topics.items()}

    async def _register_at(self, name_server: str, body: bytes) -> bool:
        identity = self._identity
        request = RegisterBroker(
            broker_name=identity.broker_name,
            broker_addr=str(identity.address),
            cluster_name=identity.cluster_name,
            ha_server_addr=self._set.ha_address,
            broker_id=identity.broker_id,
            enable_acting_master=self._heartbeats is not None,
            heartbeat_timeout_millis=None if self._heartbeats is None else self._heartbeats.expiry_ms,
            body_crc32=body_crc(body),
        )
        try:
            reply = await self._client.call(name_server, request, body, timeout_seconds=self._timeout_seconds)
            ordered = KvTable.decode(reply.body).table if reply.body else {}
        except (RemotingError, RequestError) as error:
            _logger.warning("not registered name_server=%s reason=%s", name_server, error)
            return False
        self._topics.mark_ordered(ordered)
        self._set.master_is(reply.header.master_addr, reply.header.ha_server_addr)
        return True

    async def run_heartbeats(self) -> None:
        """Tell the name servers that this broker is there, until cancelled."""
        assert self._heartbeats is not None
        identity = self._identity
        request = BrokerHeartbeat(
            cluster_name=identity.cluster_name,
            broker_addr=str(identity.address),
            broker_name=identity.broker_name,
            broker_id=identity.broker_id,
        )
        while True:
            await asyncio.gather(*(self._beat(name_server, request) for name_server in self.name_servers))
            await asyncio.sleep(self._heartbeats.interval_seconds)

    async def _beat(self, name_server: str, request: BrokerHeartbeat) -> None:
        try:
            await self._client.call_oneway(name_server, request, timeout_seconds=_BEAT_SECONDS)
        except RemotingError as error:
            _logger.debug("no heartbeat name_server=%s reason=%s", name_server, error)  # registration says it aloud

    async def unregister(self) -> None:
        """Say goodbye; who cannot be reached will notice the closed connection."""
        await asyncio.gather(*(self._unregister_at(address) for address in self.name_servers))

    async def _unregister_at(self, name_server: str) -> None:
        identity = self._identity
        request = UnregisterBroker(
            broker_name=identity.broker_name,
            broker_addr=str(identity.address),
            cluster_name=identity.cluster_name,
            broker_id=identity.broker_id,
        )
        try:
            await self._client.call(name_server, request, timeout_seconds=_UNREGISTER_SECONDS)
        except (RemotingError, RequestError) as error:
            _logger.warning("not unregistered name_server=%s reason=%s", name_server, error)


def _end_wait(told: "asyncio.Future[None]") -> None:
    if not told.done():
        told.set_result(None)
