"""What a broker does before its name servers hear of it, where slaves act as master (`enableSlaveActingMaster`).

    master   tells each slave where its log is (906) ─▶ the slave follows it ─▶ what the slave knows better (consumer
             offsets, delivered delays and timers) is taken back ─▶ online
    slave    asks the master where its log is (906) ─▶ follows it ─▶ online; at once where no master is registered

Until then it is isolated: not registered, and nothing is delivered, checked or revived here. A master that came back
would otherwise deliver again what its slave has delivered, and consumers would begin where they were when it went. What
does not succeed is tried again after a second, and `/ready` says what is missing. A slave whose log is ahead of ours
refuses to follow, so that a master which lost messages does not come back by itself.
"""

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from typing import Final

from skyrocket.broker.core.advertised_address import hosts_of
from skyrocket.broker.core.feature import Copied
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.replication.master import Master
from skyrocket.broker.replication.members import NOT_REGISTERED, members_of_set
from skyrocket.broker.replication.slave import Slave
from skyrocket.errors import DataError, SkyrocketError
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.admin_broker import ExchangeBrokerHaInfo
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0
_HAND_SHAKE_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.02


class NotYet(SkyrocketError):
    """This broker cannot go online yet; the text says what is missing."""


def starts_isolated(parts: Parts) -> bool:
    """Whether a broker must hear its set before it is known to others."""
    config = parts.config
    has_set = config.acting_master and parts.store.config.total_replicas > 1 and bool(config.name_servers)
    return has_set and not config.skip_pre_online and parts.switching is None


class PreOnline(ABC):
    """Of one broker; isolates it, and brings it online."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._set = parts.broker_set
        self._client = parts.client
        self._missing = "its set was not asked yet"
        parts.broker_set.isolate()

    def trouble(self) -> str | None:
        """Why this broker is not online."""
        if not self._set.is_isolated:
            return None
        return f"isolated, not registered: {self._missing}. skipPreOnline=true starts without asking the set"

    async def run(self) -> None:
        """Try until it is online."""
        _logger.info("isolated until the set was heard broker=%s", self._parts.identity.broker_name)
        while self._set.is_isolated:
            try:
                await self._prepare()
            except (NotYet, RemotingError, RequestError, OSError) as error:
                if str(error) != self._missing:
                    _logger.warning("not online yet reason=%s", error)
                self._missing = str(error)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                _logger.info("online broker=%s", self._parts.identity.broker_name)
                self._set.bring_online()

    async def _prepare(self) -> None:
        parts = self._parts
        members = await members_of_set(parts.client, parts.name_servers, parts.identity)
        if members is None:
            raise NotYet(f"none of the name servers {parts.config.name_servers} says who is in the set")
        members.pop(parts.identity.broker_id, None)
        await self._meet(members)

    @abstractmethod
    async def _meet(self, members: dict[int, str]) -> None:
        """Hear the other brokers of the set; raises NotYet, RemotingError or RequestError."""


class MasterPreOnline(PreOnline):
    """Of a master that may have been away."""

    def __init__(self, parts: Parts, master: Master) -> None:
        super().__init__(parts)
        self._master = master
        self._met: dict[int, set[str]] = {}  # id ▸ hosts of slaves that follow, and whose tables were taken back

    async def _meet(self, members: dict[int, str]) -> None:
        for broker_id, address in sorted(members.items()):
            if broker_id in self._met:
                continue
            request = ExchangeBrokerHaInfo(
                master_ha_address=self._set.ha_address,
                master_flush_offset=self._parts.store.commit_log.flushed_offset,
                master_address=str(self._parts.identity.address),
            )
            await self._client.call(address, request)
            hosts = await hosts_of(address)
            await self._await_slave(address, hosts)
            for feature in self._parts.features:
                for each in feature.taken_back():
                    await self._take_back(address, each)
            self._met[broker_id] = hosts

    async def _await_slave(self, address: str, hosts: set[str]) -> None:
        """Wait until one more slave of these hosts follows than those that were met before."""
        before = sum(bool(hosts & met) for met in self._met.values())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_HAND_SHAKE_SECONDS):
                while sum(slave.address.host in hosts for slave in self._master.slaves) <= before:
                    await asyncio.sleep(_LOOK_SECONDS)
                return
        raise NotYet(f"the slave {address} does not follow this log; its own log says why")

    async def _take_back(self, address: str, each: Copied) -> None:
        name = type(each.request).__name__
        try:
            each.take(bytes((await self._client.call(address, each.request)).body))
        except (RequestError, DataError) as error:
            _logger.info("a slave has nothing to take back slave=%s request=%s reason=%s", address, name, error)


class SlavePreOnline(PreOnline):
    """Of a slave: it follows its master, where there is one, before it serves in its stead."""

    def __init__(self, parts: Parts, slave: Slave) -> None:
        super().__init__(parts)
        self._slave = slave

    async def _meet(self, members: dict[int, str]) -> None:
        master = members.get(0)
        if master is None:
            _logger.info("no master is registered")
            return
        told = (await self._client.call(master, ExchangeBrokerHaInfo())).header
        if told.master_ha_address is None:
            _logger.info("the master does not offer its log master=%s", master)
            return
        self._set.master_flush_offset = told.master_flush_offset or 0
        self._set.master_is(told.master_address or master, told.master_ha_address)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_HAND_SHAKE_SECONDS):
                while not self._slave.follows:
                    await asyncio.sleep(_LOOK_SECONDS)
                return
        reason = self._slave.sync.trouble or self._slave.client.trouble or "it said nothing yet"
        if NOT_REGISTERED not in reason:
            raise NotYet(f"the master {master} is not followed: {reason}")
        _logger.info("the master lets registered slaves in alone, so this one is registered first reason=%s", reason)
