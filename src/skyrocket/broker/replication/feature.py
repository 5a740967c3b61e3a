"""Replication: a master offers its log, a slave copies it, and operators see how far it has come."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from skyrocket.broker.core.feature import Feature, Follow
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.replication.master import Master
from skyrocket.broker.replication.slave import Slave
from skyrocket.config.sections import BrokerRole
from skyrocket.observability.exposition import Kind, Metric, single
from skyrocket.observability.health import Check as Trouble
from skyrocket.protocol.bodies.replication import HaStatus
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.admin_broker import ExchangeBrokerHaInfo, GetBrokerHaStatus, HaInfoAnswer
from skyrocket.protocol.requests.broker_registration import NotifyMinBrokerIdChange
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.services import Work
from skyrocket.remoting.serving import Handlers, serve

_LOOK_SECONDS: Final = 1.0
_WAIT_KEYS: Final = (
    "inSyncReplicas",
    "minInSyncReplicas",
    "enableAutoInSyncReplicas",
    "allAckInSyncStateSet",
    "slaveTimeout",
    "haMaxGapNotInSync",
    "haMaxTimeSlaveNotCatchup",
)


class ReplicationFeature(Feature):
    """Every broker is a master or a slave."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._set = parts.broker_set
        self._role = parts.store.config.broker_role
        self.master: Master | None = None
        self.slave: Slave | None = None
        if self._role is BrokerRole.SLAVE:
            self.slave = Slave(parts)
        else:
            self.master = Master(parts)

    def handlers(self) -> Handlers:
        yield serve(GetBrokerHaStatus, self.status)
        yield serve(NotifyMinBrokerIdChange, self.learn_of_master)
        yield serve(ExchangeBrokerHaInfo, self.exchange)
        if self.master is not None:
            yield from self.master.handlers()

    def status(self, _: Peer, __: GetBrokerHaStatus, ___: Body) -> HaStatus:
        """How replication stands."""
        if self.slave is not None:
            return self.slave.status(self._parts.clock.now_ms())
        assert self.master is not None
        return self.master.status()

    def learn_of_master(self, _: Peer, header: NotifyMinBrokerIdChange, __: Body) -> None:
        """A name server says that the set has a master (again). Anybody could: the name servers are asked."""
        if self.slave is not None and header.min_broker_id == 0:
            self._set.ask()

    def exchange(self, _: Peer, header: ExchangeBrokerHaInfo, __: Body) -> HaInfoAnswer:
        """A master tells where its log is. To a slave anybody could: it asks the name servers."""
        if header.master_ha_address is not None:
            if self.slave is not None:
                self._set.ask()
            return HaInfoAnswer()
        if self.slave is not None:
            return HaInfoAnswer()
        return HaInfoAnswer(
            master_ha_address=self._set.ha_address,
            master_flush_offset=self._parts.store.commit_log.flushed_offset,
            master_address=str(self._parts.identity.address),
        )

    def follows(self) -> tuple[Follow, ...]:
        return (Follow(self._settings_changed, _WAIT_KEYS),)

    def _settings_changed(self) -> None:
        if self.master is not None:
            self.master.use(self._parts.settings.store)

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        if self.slave is not None:
            self.slave.refuse_puts()
        if self.master is not None:
            await self.master.listen()

    def services(self) -> tuple[Work, ...]:
        if self.slave is not None:
            return (self.run_looks, self.slave.sync.run, self.slave.client.run)
        assert self.master is not None
        return (self.run_looks, self.master.members.run)

    async def run_looks(self) -> None:
        """Look once a second how fast bytes flow, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if self.slave is not None:
                self.slave.look()
            if self.master is not None:
                for slave in self.master.slaves:
                    slave.pace.look(slave.stream.sent_bytes)

    def break_off(self) -> None:
        if self.master is not None:
            self.master.server.stop()
        if self.slave is not None:
            self.slave.client.stop()

    async def close(self) -> None:
        if self.master is not None:
            await self.master.finish()

    # ── for operators ────────────────────────────────────────────────────────────────────────────────────────────────

    def troubles(self) -> Mapping[str, Trouble]:
        side = self.slave or self.master
        return {"replication": side.trouble} if side is not None else {}

    def runtime_rows(self) -> Mapping[str, str]:
        rows = {"brokerRole": self._role.value}
        if self.slave is not None:
            rows["haMasterAddress"] = self._set.master_ha_address or ""
            rows["haFollowing"] = str(self.slave.client.stream is not None).lower()
            rows["haLagBytes"] = str(self.slave.lag_bytes)
        elif self.master is not None:
            lags = [self.master.lag_bytes(slave) for slave in self.master.slaves]
            rows["haSlaves"] = str(len(lags))
            rows["haInSyncReplicas"] = str(1 + sum(self.master.is_in_sync(slave) for slave in self.master.slaves))
            rows["haLagBytes"] = str(max(lags, default=0))
        return rows

    def metrics(self) -> Iterator[Metric]:
        lag = Metric("skyrocket_replication_lag_bytes", Kind.GAUGE, "Log bytes that a slave lacks, by its address")
        moved = Metric(
            "skyrocket_replication_bytes_per_second", Kind.GAUGE, "Log bytes shipped or received in the last second"
        )
        if self.slave is not None:
            following = self.slave.client.stream is not None
            lag.add(self.slave.lag_bytes)
            moved.add(self.slave.pace.per_second)
            yield single("skyrocket_replication_following", Kind.GAUGE, "1: the master's log is followed", following)
        elif self.master is not None:
            in_sync = 1
            for slave in self.master.slaves:
                lag.add(self.master.lag_bytes(slave), slave=str(slave.address))
                moved.add(slave.pace.per_second, slave=str(slave.address))
                in_sync += self.master.is_in_sync(slave)
            yield single("skyrocket_replication_in_sync", Kind.GAUGE, "Brokers in sync, the master among them", in_sync)
        yield lag
        yield moved
