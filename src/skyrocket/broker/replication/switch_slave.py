"""The slave's side where a controller decides: fenced until it has named a master, then it follows that one."""

import asyncio
import contextlib
import logging
from typing import Final

from skyrocket.broker.core.parts import Parts
from skyrocket.broker.replication.confirmed_reads import ConfirmedReads
from skyrocket.broker.replication.slave import Slave
from skyrocket.broker.replication.slave_stream import ReplicaLog, ReportRules, SlaveStream
from skyrocket.broker.replication.switch_streams import CutNeeded, SwitchSlaveStream
from skyrocket.protocol.auto_switch import SlaveHello
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.admin_broker import ExchangeBrokerHaInfo
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0
_SEARCH_SECONDS: Final = 0.2  # a master that was just chosen begins its life


class SwitchSlave(Slave):
    """A slave of whichever master the controller names."""

    retry_seconds = _LOOK_SECONDS

    def __init__(self, parts: Parts) -> None:
        assert parts.switching is not None
        self._switching = parts.switching
        self._store_config = parts.store.config
        self._dispatching = parts.dispatching
        self._confirmed = 0
        self._reads = ConfirmedReads(lambda: self.confirm_offset)
        self._wanted: str | None = None
        self._asked = asyncio.Event()
        parts.broker_set.has_controller = True
        parts.broker_set.isolate()
        super().__init__(parts)
        self.client.on_left = self._left
        parts.store.shown_end = lambda: self.confirm_offset

    def _new_stream(self, log: ReplicaLog, rules: ReportRules, now: float) -> SlaveStream:
        config = self._store_config
        hello = SlaveHello(self._switching.broker_id, config.sync_from_last_file, config.async_learner)
        return SwitchSlaveStream(log, rules, now, self._switching.epochs, hello)

    @property
    def confirm_offset(self) -> int:
        """What all members of the set have, as far as this slave knows and has it."""
        stream = self.client.stream
        if isinstance(stream, SwitchSlaveStream):
            self._confirmed = max(self._confirmed, stream.confirm_offset)
        return self._confirmed

    @property
    def end_offset(self) -> int:
        return self._commit_log.written_offset

    def look(self) -> None:
        super().look()
        self._dispatching.request()  # more may be confirmed although no bytes have come

    def refuse_puts(self) -> None:
        """The store is open. Also reads are refused until all that was found in the log is known to be confirmed."""
        super().refuse_puts()
        self._reads.hold(self._router, self._commit_log.written_offset)

    # ── whom to follow ───────────────────────────────────────────────────────────────────────────────────────────────

    def follow(self, master_address: str) -> None:
        """This is the master from now on; another one is left at once."""
        if master_address != self._wanted:
            self._wanted = master_address
            self.client.leave("the controller has named another master")
            self._asked.set()
        if self._set.is_isolated:
            self._set.bring_online()

    def _master(self) -> Address | None:
        is_found = self._wanted is not None and self._set.master_address == self._wanted
        return super()._master() if is_found else None

    async def run_search(self) -> None:
        """Ask the master that was named where its log is, until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS if self._wanted is None else _SEARCH_SECONDS):
                    await self._asked.wait()
            self._asked.clear()
            if self._wanted is not None and self.client.stream is None:
                await self._ask(self._wanted)

    async def _ask(self, master: str) -> None:
        try:
            told = (await self._remoting.call(master, ExchangeBrokerHaInfo(), timeout_seconds=_LOOK_SECONDS)).header
        except (RemotingError, RequestError) as error:
            self.client.trouble = f"the master {master} does not say where its log is: {error}"
            return
        if told.master_ha_address is None:  # it does not know yet that it is master
            self.client.trouble = f"{master} does not say that it is master"
        elif master == self._wanted:
            self._set.master_flush_offset = told.master_flush_offset or 0
            self._set.follow(master, told.master_ha_address)
            self.sync.soon()

    async def _may_follow(self) -> str | None:
        """Epochs say whether the log may be followed."""
        return None

    def _left(self, error: Exception) -> None:
        if isinstance(error, CutNeeded):
            self._switching.demand_cut(error.end_offset)
