"""What a slave keeps of its master's timer, so that it does not deliver again what its master has delivered.

A slave has no wheel. When it is started as the master it parks its timers from the first on, and passes over those that
the old master had parked and delivered: which these are stands in `config/timercheck`.
"""

import logging

from skyrocket.broker.timer.timer_counts import TimerCountTable
from skyrocket.errors import DataError
from skyrocket.format.config_files import TIMERS
from skyrocket.format.timer_checkpoint import TimerCheckpoint, decode_timer_checkpoint, encode_timer_checkpoint
from skyrocket.store.disk import Disk
from skyrocket.store.layout import StorePaths

_logger = logging.getLogger(__name__)


class TimerFollower:
    """Keeps check point and counts; a store with a wheel of its own, of a former master, keeps its own check point."""

    def __init__(self, disk: Disk, path: str, counts: TimerCountTable) -> None:
        self._disk = disk
        self._path = path
        self._counts = counts
        self.known = TimerCheckpoint()
        self._has_own_wheel = False

    def load(self) -> None:
        """Look at what is there."""
        try:
            page = self._disk.read_file(self._path)
            self.known = decode_timer_checkpoint(page) if page else TimerCheckpoint()
        except FileNotFoundError:
            return
        except DataError as error:
            _logger.warning("the timer's check point cannot be read path=%s reason=%s", self._path, error)
        self._has_own_wheel = self.known.queue_offset > 0

    def let_wheel_go(self, paths: StorePaths) -> None:
        """Turn the wheel of a former master into a check point: who may act as master builds one when it does."""
        if self._has_own_wheel:
            self._has_own_wheel = False
            own = self.known
            self.keep(
                TimerCheckpoint(
                    own.last_read_time_ms, master_queue_offset=own.queue_offset, data_version=own.data_version
                )
            )
        self._disk.remove_tree(paths.timer_log)
        if self._disk.exists(paths.timer_wheel):
            self._disk.unlink(paths.timer_wheel)

    def take_checkpoint(self, body: bytes) -> None:
        """How far the master has parked and delivered; raises DataError."""
        told = decode_timer_checkpoint(body)
        self.keep(
            TimerCheckpoint(
                told.last_read_time_ms, master_queue_offset=told.queue_offset, data_version=told.data_version
            )
        )

    def keep(self, known: TimerCheckpoint) -> None:
        """How far whoever delivers has come."""
        if self._has_own_wheel or known == self.known:
            return
        if known.last_read_time_ms < self.known.last_read_time_ms:
            return  # a master that was away: more was delivered meanwhile, and it will take that back
        try:
            self._disk.replace_file(self._path, encode_timer_checkpoint(known))
        except OSError as error:
            _logger.error("the timer's check point could not be saved path=%s reason=%s", self._path, error)
            return
        self.known = known

    def take_counts(self, body: bytes) -> None:
        """How many timers of each topic wait; raises DataError."""
        told = TIMERS.decode(body)
        if told.data_version != self._counts.data_version:
            self._counts.replace(told)
