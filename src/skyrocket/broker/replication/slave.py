"""The slave's side: follows its master's log, takes over its tables, and takes no messages of its own."""

import logging
from dataclasses import replace
from functools import partial
from typing import Final

from skyrocket.broker.core.parts import Parts
from skyrocket.broker.replication.ha_client import HaClient
from skyrocket.broker.replication.joining import tail_of
from skyrocket.broker.replication.logs import SlaveLog
from skyrocket.broker.replication.metadata_sync import MetadataSync
from skyrocket.broker.replication.pace import Pace
from skyrocket.broker.replication.slave_stream import ReplicaLog, ReportRules, SlaveStream
from skyrocket.broker.replication.topic_guesses import TopicGuesses
from skyrocket.clock import Seldom
from skyrocket.config.sections import FlushDiskType
from skyrocket.errors import ConfigError
from skyrocket.protocol.bodies.replication import HaClient as HaClientStatus
from skyrocket.protocol.bodies.replication import HaStatus
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import RequestError, ServiceNotAvailable, SystemBusy, SystemFailure
from skyrocket.protocol.requests.admin_broker import CompareLogTail
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.admission import REJECTED
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import RawHandler
from skyrocket.remoting.tls import client_tls

_logger = logging.getLogger(__name__)

_PUTS: Final = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.SEND_REPLY_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
    }
)
_PULLS: Final = frozenset({RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE})


class Slave:
    """Copies the log, and what all features want of the master's tables."""

    retry_seconds = 5.0  # until the master is tried again, as RocketMQ's slave

    def __init__(self, parts: Parts) -> None:
        store, config = parts.store, parts.store.config
        self._router = parts.router
        self._host = parts.identity.address.host
        self._remoting = parts.client
        self._set = parts.broker_set
        self._commit_log = store.commit_log
        self._dispatcher = store.dispatcher
        self._root = store.paths.root
        self._seldom = Seldom(parts.peer_clock)
        self._clock = parts.peer_clock
        self._settings = parts.settings
        self._told_address = _parsed(config.ha_master_address)
        self.pace = Pace()
        self.has_followed = False  # since the start
        self._was_called = False  # by a master that came back
        self._special = parts.special
        self.sync = MetadataSync(parts.client, parts.broker_set, parts.features, parts.peer_clock, self._has_on_disk)
        self.sync.may_sync = lambda: parts.special.are_over  # while a slave acts, its own tables count
        self.client = self._ha_client(parts)
        self._guesses = TopicGuesses(parts.tables.topics, parts.config.default_topic_queues, self.sync.soon)
        store.add_listener(self._guesses.dispatched)
        self.sync.on_synced = self._synced
        parts.broker_set.on_master(self.client.look_again)
        parts.broker_set.is_looking = True

    def _ha_client(self, parts: Parts) -> HaClient:
        store, config = parts.store, parts.store.config
        return HaClient(
            SlaveLog(store),
            parts.peer_clock,
            self._master,
            rules=ReportRules(config.ha_heartbeat_ms / 1000, config.ha_silence_ms / 1000, self.retry_seconds),
            when_flushed=store.flusher.when_flushed if config.flush_disk_type is FlushDiskType.SYNC_FLUSH else None,
            may_follow=self._may_follow,
            tls=client_tls(replace(parts.tls, client_enabled=True)) if config.ha_tls else None,
            new_stream=self._new_stream,
        )

    def _new_stream(self, log: ReplicaLog, rules: ReportRules, now: float) -> SlaveStream:
        return SlaveStream(log, rules, now)

    def _master(self) -> Address | None:
        """Where the log is copied from, once the master's topics are here."""
        if self._told_address is not None and self._set.master_address is None:
            return self._told_address
        has_topics = self.sync.synced_at is not None or self._was_called
        if not has_topics or self._set.master_ha_address is None:
            return None
        return self._told_address or Address.parse(self._set.master_ha_address)

    def _has_on_disk(self, end_offset: int) -> bool:
        return self._commit_log.flushed_offset >= end_offset

    def _synced(self) -> None:
        self._guesses.forget()
        if self.client.stream is None:
            self.client.look_again()

    async def _may_follow(self) -> str | None:
        """Why the master must not be followed: a log that went another way than ours is never continued."""
        end, master = self._commit_log.written_offset, self._set.master_address
        if master is None:
            return None
        tail = tail_of(self._commit_log, self._commit_log.min_offset, end)
        request = CompareLogTail(end_offset=tail.end_offset, size=tail.size, crc=tail.crc)
        try:
            await self._remoting.call(master, request)
        except RequestError as error:
            is_rocketmq = error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED  # it compares nothing
            return None if is_rocketmq else str(error)
        except RemotingError as error:
            return f"the master {master} does not answer: {error}"
        return None

    @property
    def follows(self) -> bool:
        """Whether the master has let this slave in, and was heard."""
        return self.client.stream is not None and self.client.stream.received_from_master

    def hear_of_master(self, caller: str, address: str | None, ha_address: str) -> None:
        """A master that comes back says where its log is, before the name servers know.

        Anybody could say so: it is believed when it is the master that is known, or speaks of itself while no master is
        followed. Its log is compared with ours before it is followed in any case.
        """
        is_known = address is not None and address == self._set.master_address
        speaks_of_itself = address is not None and {Address.parse(each).host for each in (address, ha_address)} == {
            caller
        }
        if self.client.stream is not None or not (is_known or speaks_of_itself):
            self._set.ask()
            return
        # A slave that acts as master takes over no tables yet; the topics of the log that it has are here already.
        self._was_called = self._commit_log.written_offset > 0
        self._set.master_is(address, ha_address)
        self.sync.soon()
        self.client.look_again()

    def look(self) -> None:
        """Once a second: how fast it goes, and whether the name servers must be asked for the master soon."""
        stream = self.client.stream
        self.pace.look(stream.received_bytes if stream is not None else 0)
        self._set.is_looking = stream is None
        self.has_followed |= self.follows
        if self.damage is not None and self._seldom.may_say("damage"):
            _logger.error("%s path=%s", self.damage, self._root)

    # ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────────

    def refuse_puts(self) -> None:
        """Stand in for the handlers of what a slave does not do; RocketMQ: pulls too, without slaveReadEnable."""
        for route in self._router.routes():
            if route.code in _PUTS:
                route.handler = self._refuse
            elif route.code in _PULLS:
                route.handler = partial(self._pull, route.handler)

    def _refuse(self, _: Peer, request: RemotingCommand) -> Outcome:
        if not self._settings.broker.acting_master:
            raise SystemBusy(REJECTED)
        if request.code == RequestCode.CONSUMER_SEND_MSG_BACK:  # consumers then send it elsewhere themselves
            raise SystemFailure(f"no master available along with {self._host}")
        raise ServiceNotAvailable("service not available now: messages are put to the slave")

    def _pull(self, serve: RawHandler, peer: Peer, request: RemotingCommand) -> Outcome:
        if not self._settings.broker.slave_read and not self._special.acts:
            raise SystemBusy(REJECTED)
        return serve(peer, request)

    # ── state ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def lag_bytes(self) -> int:
        """What the master had when it was last asked, seconds ago, and this log does not have yet."""
        return max((self.sync.master_end_offset or 0) - self._commit_log.written_offset, 0)

    def trouble(self) -> str | None:
        """Why this slave is not ready: its log is damaged, or it has not reached its master since it was started."""
        return self.damage or (None if self.has_followed else self.sync.trouble or self.client.trouble)

    @property
    def damage(self) -> str | None:
        """Where the copied log cannot be read, and what to do: its queues end there, whatever else is copied."""
        found = self._dispatcher.damage
        if found is None:
            return None
        return (
            f"the copied log is damaged at offset {found.physical_offset} ({found.reason}): queues end there. Compare "
            "both logs (skyrocket inspect --compare). Where the master's is sound, empty this slave's store directory "
            "so that it begins anew; where it is damaged too, repair the master's store first"
        )

    def status(self, now_ms: int) -> HaStatus:
        """As GET_BROKER_HA_STATUS shows it."""
        stream, now = self.client.stream, self._clock.monotonic()
        client = HaClientStatus(
            master_address=self._set.master_ha_address,
            transferred_bytes_per_second=self.pace.per_second,
            max_offset=self._commit_log.written_offset,
            last_read_timestamp=now_ms - int((now - stream.last_heard) * 1000) if stream is not None else 0,
            last_write_timestamp=now_ms - int((now - stream.last_report) * 1000) if stream is not None else 0,
            master_flush_offset=self._set.master_flush_offset,
            is_activated=stream is not None,
        )
        return HaStatus(is_master=False, master_max_offset=self.sync.master_end_offset or 0, client=client)


def _parsed(address: str) -> Address | None:
    if not address.strip():
        return None
    try:
        return Address.parse(address)
    except ValueError as error:
        raise ConfigError(f"haMasterAddress: {error}") from error
