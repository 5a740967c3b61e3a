"""The master's side: the HA port, who may use it, and what its slaves have."""

import asyncio
import logging
import ssl
from collections.abc import Hashable, Iterator
from typing import Final, Protocol

from skyrocket.broker.core.parts import Parts
from skyrocket.broker.replication.copy_waits import CopyWaits
from skyrocket.broker.replication.ha_server import HaServer, SlaveLink
from skyrocket.broker.replication.joining import LogTail, check_tail
from skyrocket.broker.replication.logs import MasterLog
from skyrocket.broker.replication.master_stream import ReplicaRefused, TransferRules
from skyrocket.broker.replication.members import Members
from skyrocket.broker.replication.replicas import Replicas
from skyrocket.broker.rules.put_rules import CopyKeeper
from skyrocket.config.sections import BrokerRole, StoreConfig
from skyrocket.errors import ConfigError
from skyrocket.model.words import counted
from skyrocket.protocol.bodies.replication import HaClient as HaClientStatus
from skyrocket.protocol.bodies.replication import HaConnection, HaStatus
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import SystemFailure
from skyrocket.protocol.requests.admin_broker import CompareLogTail
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.listening import why_not_listening
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve
from skyrocket.remoting.tls import ServerTls

_logger = logging.getLogger(__name__)

_POOL_LOOK_SECONDS: Final = 0.1
_GATHER_SECONDS: Final = 0.05  # RocketMQ's asynchronous master looks at its log ten times a second
_FINISH_SECONDS: Final = 5.0
_FINISH_LOOK_SECONDS: Final = 0.01


class Waits(CopyKeeper, Protocol):
    """Those who wait for copies, by settings that may change."""

    def use(self, config: StoreConfig) -> None: ...

    def in_sync(self) -> int: ...


class HaPortTaken(ConfigError):
    """Slaves could not reach this master."""


class Master:
    """Offers its log; a SYNC_MASTER lets senders wait for those who have it."""

    def __init__(self, parts: Parts) -> None:
        config = parts.store.config
        self._log = self._offered_log(parts)
        self._commit_log = parts.store.commit_log
        self._is_sync = config.broker_role is BrokerRole.SYNC_MASTER
        self._dispatching = parts.dispatching
        self._must_listen = self._is_sync or config.ha_listen_port > 0
        self._tls = _server_tls(parts) if config.ha_tls else None
        self._bind_address = parts.config.bind_address
        self._set = parts.broker_set
        self._clock = parts.peer_clock
        self._config = config
        self.replicas = Replicas(self._is_heard)
        self.members = Members(parts.client, parts.name_servers, parts.identity, config.ha_networks)
        self.server = self._ha_server(transfer_rules(config))
        self.is_listening = False
        self._waits = self._copy_keeper(parts)
        if self._is_sync:
            parts.rules.copies = self._waits
        parts.dispatching.on_growth.append(self.server.appended)

    def _offered_log(self, parts: Parts) -> MasterLog:
        return MasterLog(parts.store)

    def _ha_server(self, rules: TransferRules) -> HaServer:
        return HaServer(self._log, self.replicas, self._clock, self.members.refusal, rules)

    def _copy_keeper(self, parts: Parts) -> Waits:
        return CopyWaits(self.replicas, self._commit_log, parts.store.config)

    def use(self, config: StoreConfig) -> None:
        """Go by these settings from now on, as far as they say whom senders wait for."""
        self._config = config
        self._waits.use(config)

    def handlers(self) -> Handlers:
        return (serve(CompareLogTail, self.compare),)

    def compare(self, peer: Peer, header: CompareLogTail, _: Body) -> None:
        """Whether a slave may copy, and its log is a first part of this one; raises SystemFailure with the reason.

        The HA port itself has no words for it.
        """
        reason = self.members.refusal(peer.remote_address)
        if reason is not None:
            raise SystemFailure(reason)
        try:
            check_tail(self._log, LogTail(header.end_offset, header.size, header.crc))
        except ReplicaRefused as error:
            raise SystemFailure(str(error)) from None

    async def listen(self) -> None:
        """Open the HA port; where nobody asked for one, a port that is taken is only told. Raises HaPortTaken."""
        port = Address.parse(self._set.ha_address).port
        try:
            await self.server.listen(self._bind_address, port, self._tls)
        except OSError as error:
            problem = why_not_listening(error, self._bind_address, port, port_option="haListenPort")
            if self._must_listen:
                raise HaPortTaken(f"cannot listen for slaves: {problem}") from error
            _logger.warning("no slave can copy from this broker: %s", problem)
        else:
            self.is_listening = True

    def trouble(self) -> str | None:
        """Why this master takes no messages that wait for slaves."""
        if not self._is_sync or not self._waits.is_short():
            return None
        number = self._waits.in_sync()
        in_sync = counted(number, "broker is", "brokers are")
        return f"{in_sync} in sync, minInSyncReplicas asks for more: messages are refused"

    async def finish(self) -> None:
        """Nothing is put any more: let the slaves that are in sync have all of the log, within a bounded time."""
        try:
            async with asyncio.timeout(_FINISH_SECONDS):
                while any(self.is_in_sync(slave) and self.lag_bytes(slave) for slave in self.slaves):
                    self.server.appended()
                    await asyncio.sleep(_FINISH_LOOK_SECONDS)
        except TimeoutError:
            for slave in self.slaves:
                lacks = self.lag_bytes(slave)
                if lacks:
                    _logger.warning("stopped before a slave had all address=%s lacks_bytes=%d", slave.address, lacks)
        self.server.stop()

    @property
    def slaves(self) -> Iterator[SlaveLink]:
        return self.server.slaves()

    def lag_bytes(self, slave: SlaveLink) -> int:
        """What a slave lacks."""
        return max(self._commit_log.written_offset - max(slave.stream.acknowledged_offset, 0), 0)

    def is_in_sync(self, slave: SlaveLink) -> bool:
        return self.lag_bytes(slave) < self._config.ha_max_gap_bytes and self._is_heard(slave)

    def _is_heard(self, slave: Hashable) -> bool:
        """Whether a slave is there, as far as can be told: a machine without power closes no connection."""
        assert isinstance(slave, SlaveLink)
        answer_ms, idle_ms = self._config.slave_timeout_ms, self._config.ha_unheard_ms
        return slave.stream.is_heard(self._clock.monotonic(), answer_ms / 1000, idle_ms / 1000)

    def status(self) -> HaStatus:
        """As GET_BROKER_HA_STATUS shows it."""
        connections = tuple(
            HaConnection(
                address=str(slave.address),
                slave_ack_offset=slave.stream.acknowledged_offset,
                lag_bytes=self.lag_bytes(slave),
                in_sync=self.is_in_sync(slave),
                transferred_bytes_per_second=slave.pace.per_second,
                transfer_from=slave.stream.next_offset,
            )
            for slave in self.slaves
        )
        return HaStatus(
            is_master=True,
            master_max_offset=self._commit_log.written_offset,
            in_sync_slaves=sum(each.in_sync for each in connections),
            connections=connections,
            client=HaClientStatus(),
        )


def _server_tls(parts: Parts) -> ssl.SSLContext:
    context = ServerTls(parts.tls).context()
    if context is None:
        raise ConfigError("haTlsEnable=true needs a certificate: tls.server.certPath and tls.server.keyPath")
    return context


def transfer_rules(config: StoreConfig) -> TransferRules:
    """What the settings say about shipping; a slave without a log gets all that is there."""
    return TransferRules(
        batch_bytes=config.ha_batch_bytes,
        heartbeat_seconds=config.ha_heartbeat_ms / 1000,
        silence_seconds=config.ha_silence_ms / 1000,
        look_seconds=_POOL_LOOK_SECONDS if config.transient_pool else config.ha_heartbeat_ms / 1000,
        bytes_per_second=config.ha_bytes_per_second if config.ha_flow_control else 0,
        gather_seconds=0.0 if config.broker_role is BrokerRole.SYNC_MASTER else _GATHER_SECONDS,
        from_first_file=True,
    )
