"""The timer of a slave that acts as master: a wheel for as long as that lasts.

It parks the timers from the first on, in a folder of its own that is thrown away afterwards, and passes over what the
master has delivered. How far it has come stands where the slave keeps its master's check point: there it is found when
the slave acts again, when it is started as the master, and by a master that comes back and asks.
"""

import asyncio
import os.path
from collections.abc import Callable
from typing import Final

from skyrocket.broker.core.parts import Parts
from skyrocket.broker.rules.special_services import OtherBrokers, SpecialServices, put_elsewhere
from skyrocket.broker.timer.following import TimerFollower
from skyrocket.broker.timer.service import LOOK_SECONDS, TimerService
from skyrocket.broker.timer.timer_counts import TimerCountTable
from skyrocket.format.config_files import TIMERS
from skyrocket.format.timer_checkpoint import TimerCheckpoint, encode_timer_checkpoint
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.layout import StorePaths
from skyrocket.store.timer.timer_files import TimerFiles

_FOLDER: Final = "acting"


class ActingTimer:
    """Makes a service when this broker begins to act, and lets it go when that is over."""

    def __init__(self, parts: Parts, follower: TimerFollower, use: Callable[[TimerService | None], None]) -> None:
        self._parts = parts
        self._follower = follower
        self._use = use  # have the service known, to those who ask whether there is a timer
        self._folder = os.path.join(parts.store.paths.root, _FOLDER)

    async def run(self, special: SpecialServices) -> None:
        """Deliver to other brokers whenever this one acts as master, until cancelled."""
        while True:
            others = await special.begin()
            with special.at_work():
                service, files = await asyncio.to_thread(self._made)
                self._use(service)
                try:
                    await self._deliver(special, service, others)
                finally:
                    self._use(None)
                    self._note(service)
                    files.close()
                    self._parts.store.cleaner.oldest_wanted = None
                    self._parts.disk.remove_tree(self._folder)

    async def _deliver(self, special: SpecialServices, service: TimerService, others: OtherBrokers) -> None:
        clock = self._parts.clock
        note_seconds = self._parts.store.config.timer_flush_interval_ms / 1000
        noted = clock.monotonic()
        while special.acts:
            if not await put_elsewhere(service.firing(clock.now_ms()), others):
                await clock.sleep_until(service.next_due_ms(), LOOK_SECONDS)
            if clock.monotonic() - noted >= note_seconds:
                noted = clock.monotonic()
                self._note(service)
                service.pin()

    def _made(self) -> tuple[TimerService, TimerFiles]:
        parts, config = self._parts, self._parts.store.config
        paths, disk = StorePaths(self._folder), parts.disk
        if disk.exists(self._folder):  # of a broker that was killed while it acted
            disk.remove_tree(self._folder)
        disk.make_directory(paths.config)
        disk.write_file(paths.timer_checkpoint, encode_timer_checkpoint(self._follower.known))
        counts_file = ConfigFile(disk, os.path.join(paths.config, "timermetrics"), TIMERS.decode, TIMERS.encode)
        counts = TimerCountTable(counts_file, parts.clock)
        files = TimerFiles(disk, paths, config.timer_precision_ms, config.timer_log_file_size)
        service = TimerService(parts.store, files, counts, parts.clock, config)
        service.load()
        return service, files

    def _note(self, service: TimerService) -> None:
        """Say how far it has come; not before all was parked that the master had parked, or that would be forgotten."""
        if service.parked_offset >= self._follower.known.master_queue_offset:
            version = self._follower.known.data_version.next(self._parts.clock.now_ms())  # RocketMQ takes newer ones
            self._follower.keep(
                TimerCheckpoint(service.read_time_ms, master_queue_offset=service.parked_offset, data_version=version)
            )
