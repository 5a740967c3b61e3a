"""Replication: a master offers its log, a slave copies it, and operators see how far it has come."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from skyrocket.broker.core.feature import Feature, Follow
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.replication.master import Master
from skyrocket.broker.replication.pre_online import MasterPreOnline, PreOnline, SlavePreOnline, starts_isolated
from skyrocket.broker.replication.slave import Slave
from skyrocket.broker.replication.switch_master import SwitchMaster
from skyrocket.broker.replication.switch_requests import plain_handlers, switch_handlers
from skyrocket.broker.replication.switch_slave import SwitchSlave
from skyrocket.config.sections import BrokerRole
from skyrocket.observability.exposition import Kind, Metric, single
from skyrocket.observability.health import Check as Trouble
from skyrocket.protocol.bodies.replication import HaStatus
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import InvalidParameter
from skyrocket.protocol.requests.admin_broker import (
    ExchangeBrokerHaInfo,
    GetBrokerHaStatus,
    HaInfoAnswer,
    ResetMasterFlushOffset,
)
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
        if parts.switching is not None:
            self._build_switching()
        elif self._role is BrokerRole.SLAVE:
            self.slave = Slave(parts)
        else:
            self.master = Master(parts)
        self.pre_online = self._pre_online() if starts_isolated(parts) else None

    def _build_switching(self) -> None:
        """A controller decides: this life of the broker has the role that it said last."""
        if self._role is BrokerRole.SLAVE:
            self.slave = SwitchSlave(self._parts)
        else:
            self.master = SwitchMaster(self._parts)

    def _pre_online(self) -> PreOnline:
        if self.slave is not None:
            return SlavePreOnline(self._parts, self.slave)
        assert self.master is not None
        return MasterPreOnline(self._parts, self.master)

    def handlers(self) -> Handlers:
        yield serve(GetBrokerHaStatus, self.status)
        yield serve(NotifyMinBrokerIdChange, self.learn_of_master)
        yield serve(ExchangeBrokerHaInfo, self.exchange)
        yield serve(ResetMasterFlushOffset, self.set_flush_offset)
        if self.master is not None:
            yield from self.master.handlers()
        switching = self._parts.switching
        yield from plain_handlers() if switching is None else switch_handlers(self._parts, switching)

    def status(self, _: Peer, __: GetBrokerHaStatus, ___: Body) -> HaStatus:
        """How replication stands."""
        if self.slave is not None:
            return self.slave.status(self._parts.clock.now_ms())
        assert self.master is not None
        return self.master.status()

    def learn_of_master(self, _: Peer, __: NotifyMinBrokerIdChange, ___: Body) -> None:
        """A name server says that the set has a master (again), or none. Anybody could: the name servers are asked."""
        if self.slave is not None:
            self._set.ask()

    def exchange(self, peer: Peer, header: ExchangeBrokerHaInfo, __: Body) -> HaInfoAnswer:
        """A master tells where its log is, or a slave asks. Raises InvalidParameter."""
        if header.master_ha_address is not None:
            if self.slave is not None:
                self._hear_of_master(self.slave, peer, header.master_address, header.master_ha_address)
                self._set.master_flush_offset = header.master_flush_offset or self._set.master_flush_offset
            return HaInfoAnswer()
        if self.slave is not None:
            return HaInfoAnswer()
        return HaInfoAnswer(
            master_ha_address=self._set.ha_address,
            master_flush_offset=self._parts.store.commit_log.flushed_offset,
            master_address=str(self._parts.identity.address),
        )

    def _hear_of_master(self, slave: Slave, peer: Peer, address: str | None, ha_address: str) -> None:
        if not self._parts.config.acting_master:
            self._set.ask()
            return
        try:
            slave.hear_of_master(peer.remote_address.host, address, ha_address)
        except ValueError as error:
            raise InvalidParameter(f"the master's address cannot be read: {error}") from None

    def set_flush_offset(self, _: Peer, header: ResetMasterFlushOffset, __: Body) -> None:
        """A slave remembers it for haStatus; it never cuts its log, so nothing else depends on it. A master knows."""
        if self.slave is not None and header.master_flush_offset is not None:
            self._set.master_flush_offset = header.master_flush_offset

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
        isolated = () if self.pre_online is None else (self.pre_online.run,)
        if isinstance(self.slave, SwitchSlave):
            isolated = (*isolated, self.slave.run_search)
        if self.slave is not None:
            return (*isolated, self.run_looks, self.slave.sync.run, self.slave.client.run)
        assert self.master is not None
        return (*isolated, self.run_looks, self.master.members.run)

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
        assert side is not None
        isolated = {} if self.pre_online is None else {"set": self.pre_online.trouble}
        return {"replication": side.trouble, **isolated}

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
        if self._parts.switching is not None:
            rows["masterEpoch"] = str(self._parts.switching.epochs.last.number)
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
            stopped = self.slave.damage is not None
            help_text = "1: the copied log is damaged, queues end there"
            yield single("skyrocket_replication_dispatch_stopped", Kind.GAUGE, help_text, stopped)
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
        yield from self._switch_metrics()

    def _switch_metrics(self) -> Iterator[Metric]:
        """Of a broker whose role a controller decides."""
        switching, side = self._parts.switching, self.slave or self.master
        if switching is None or not isinstance(side, SwitchSlave | SwitchMaster):
            return
        is_fenced = self._set.is_isolated
        for name, help_text, value in (
            ("skyrocket_failover_master", "1: this broker is master of its set", self.master is not None),
            ("skyrocket_failover_fenced", "1: no controller has said yet who is master", is_fenced),
            ("skyrocket_failover_epoch", "The newest epoch of this broker's log", switching.epochs.last.number),
            ("skyrocket_failover_confirm_offset", "What all of the sync-state set have", side.confirm_offset),
        ):
            yield single(name, Kind.GAUGE, help_text, value)
