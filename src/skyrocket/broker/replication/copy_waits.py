"""How many brokers must have a message before its sender hears of it, and the waiting for them.

inSyncReplicas   0      one slave must have it; without a slave in sync the answer is SLAVE_NOT_AVAILABLE at once
                 1      nobody waits, as in RocketMQ 5 where nothing is set
                 n      n brokers, this one among them, or FLUSH_SLAVE_TIMEOUT after slaveTimeout
enableAutoInSyncReplicas   no more than are in sync, but never fewer than minInSyncReplicas
allAckInSyncStateSet       all that are in sync
minInSyncReplicas          with fewer in sync nothing is taken at all
"""

import asyncio
from collections.abc import Callable

from skyrocket.broker.replication.replicas import Replicas
from skyrocket.config.sections import StoreConfig
from skyrocket.store.commit_log import CommitLog
from skyrocket.store.results import PutStatus


class CopyWaits:
    """Of a SYNC_MASTER; one wait for each turn of the loop."""

    def __init__(self, replicas: Replicas, commit_log: CommitLog, config: StoreConfig) -> None:
        self._replicas = replicas
        self._log = commit_log
        self._config = config

    def use(self, config: StoreConfig) -> None:
        """Go by these settings from the next wait on."""
        self._config = config

    def in_sync(self) -> int:
        """How many brokers are in sync now, this one among them."""
        return self._replicas.in_sync(self._log.written_offset, self._config.ha_max_gap_bytes)

    def is_short(self) -> bool:
        least = self._config.min_in_sync_replicas
        return least > 1 and self.in_sync() < least

    def held_by(self, end_offset: int) -> int:
        return self._replicas.held_by(end_offset)

    def wait(self, end_offset: int, settled: Callable[[PutStatus], None]) -> None:
        required = self._required()
        if required is None:
            settled(PutStatus.SLAVE_NOT_AVAILABLE)
            return

        def too_late() -> None:
            wait.cancel()
            settled(PutStatus.FLUSH_SLAVE_TIMEOUT)

        def copied() -> None:
            timer.cancel()
            settled(PutStatus.PUT_OK)

        timer = asyncio.get_running_loop().call_later(self._config.slave_timeout_ms / 1000, too_late)
        wait = self._replicas.wait(end_offset, required, copied)

    def _required(self) -> int | None:
        """How many brokers must have a message; None when a slave must and none is in sync."""
        config, in_sync = self._config, self.in_sync()
        if not config.in_sync_replicas and in_sync < 2:
            return None
        required = config.in_sync_replicas or 2
        if config.auto_in_sync_replicas:
            required = max(min(required, in_sync), config.min_in_sync_replicas)
        return max(required, in_sync) if config.all_ack_in_sync else required
