"""Acting as master: a slave asks who of its set is there, and takes over its master's work while that is gone."""

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Final

from skyrocket.broker.acting.cluster_hosts import ClusterHosts
from skyrocket.broker.acting.decision import Members, should_act
from skyrocket.broker.acting.escape import Escape
from skyrocket.broker.acting.masters import Masters
from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.parts import Parts
from skyrocket.errors import DataError
from skyrocket.observability.exposition import Kind, Metric, single
from skyrocket.protocol.bodies.route import BrokerMemberGroup
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.broker_registration import GetBrokerMemberGroup
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.services import Work

_logger = logging.getLogger(__name__)

_ASK_SECONDS: Final = 3.0


class ActingFeature(Feature):
    """Of a master too: it reads messages of other sets whose check points have come here."""

    def __init__(self, parts: Parts) -> None:
        identity, config = parts.identity, parts.config
        self._parts = parts
        self._special = parts.special
        self._set = parts.broker_set
        self._look_seconds = config.member_look_period_ms / 1000
        self._wake = asyncio.Event()
        masters = Masters(
            parts.client, parts.name_servers, identity.cluster_name, identity.broker_name, parts.peer_clock
        )
        self.escape = Escape(parts.client, masters, identity, parts.peer_clock, is_allowed=config.remote_escape)
        if parts.name_servers:
            self._special.others = self.escape
        self._hosts: ClusterHosts | None = None
        if config.acting_master and config.remote_escape and parts.name_servers:
            self._hosts = ClusterHosts(
                parts.client,
                parts.name_servers,
                identity.cluster_name,
                parts.store.config.ha_networks,
                parts.peer_clock,
            )
            parts.tables.topics.takes_check_points_of = self._hosts.are_known
        self._set.on_ask(self._wake.set)  # a name server says that another member has the smallest id now

    def services(self) -> tuple[Work, ...]:
        hosts: tuple[Work, ...] = () if self._hosts is None else (self._hosts.run,)
        if not self._parts.may_act or not self._parts.name_servers:
            return hosts
        return (*hosts, self._set.when_online(self.run_looks))

    async def run_looks(self) -> None:
        """Look who is there until cancelled."""
        while True:
            self._wake.clear()
            await self.look()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_seconds):  # not wait_for: 3.11's loses cancellations
                    await self._wake.wait()

    async def look(self) -> None:
        """Ask all name servers, and act or stop acting."""
        told = await asyncio.gather(*(self._members(name_server) for name_server in self._parts.name_servers))
        answered = [members for members in told if members is not None]
        is_following = not self._set.is_looking
        own_id = self._parts.identity.broker_id
        acts = should_act(own_id, answered, is_following=is_following, acts=self._special.acts)
        if acts != self._special.acts:
            _logger.warning("this slave %s as master", "acts" if acts else "stops to act")
        self._special.act(acts)

    async def _members(self, name_server: str) -> Members | None:
        identity = self._parts.identity
        request = GetBrokerMemberGroup(cluster_name=identity.cluster_name, broker_name=identity.broker_name)
        try:
            reply = await self._parts.client.call(name_server, request, timeout_seconds=_ASK_SECONDS)
            return BrokerMemberGroup.decode(bytes(reply.body)).members.addresses
        except (RemotingError, RequestError, DataError) as error:
            _logger.info("members of the set not known name_server=%s reason=%s", name_server, error)
            return None

    # ── for operators ────────────────────────────────────────────────────────────────────────────────────────────────

    def runtime_rows(self) -> Mapping[str, str]:
        return {"brokerActive": str(self._parts.is_master or self._special.acts).lower()}

    def metrics(self) -> Iterator[Metric]:
        if not self._parts.may_act:
            return
        yield single(
            "skyrocket_acting_as_master", Kind.GAUGE, "1: this slave does its master's work", self._special.acts
        )
        escaped = Metric(
            "skyrocket_escaped_messages_total", Kind.COUNTER, "Attempts to put messages to masters of other sets"
        )
        escaped.add(self.escape.sent, taken="true")
        escaped.add(self.escape.not_taken, taken="false")
        yield escaped
