"""Whether the store takes messages, and if not, why.

A failed fsync shuts it for good: what is on disk is not known any more. A full disk, a read-only file system and
a process without file descriptors lose nothing: they are troubles that pass, each with the place where it was met.
"""

import errno
import logging
import os
from typing import Final

from skyrocket.clock import Clock, Seldom
from skyrocket.config.sections import StoreConfig
from skyrocket.errors import StoreFailed
from skyrocket.store.disk import Disk

log = logging.getLogger(__name__)

PUTS: Final = "messages"  # the place of troubles with appends
NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})
_PROBE: Final = "skyrocket.probe"
_PASSING: Final = {
    errno.ENOSPC: "disk full",
    errno.EDQUOT: "disk full (quota)",
    errno.EROFS: "the file system is read-only",
    errno.EMFILE: "no file descriptors are left",
    errno.ENFILE: "no file descriptors are left on this machine",
}


class WriteGate:
    """Open while the store runs; shut for good when the disk has failed."""

    def __init__(self, root: str, clock: Clock) -> None:
        self.is_open = False
        self.failure: str | None = None  # why no more writes are taken
        self.root = root
        self._troubles: dict[str, str] = {}  # place ▸ what is wrong there now
        self._seldom = Seldom(clock)

    def open(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    def fail(self, error: OSError | StoreFailed) -> None:
        """What is on disk is not known any more: take no writes until the store was opened, and checked, again."""
        if self.failure is None:
            self.failure = (
                f"writing to {self.root} failed ({error}): no more messages are taken; "
                "repair the disk and start again, what was acknowledged as flushed is kept"
            )
            log.error("store failed, refusing writes path=%s error=%s", self.root, error)
        self.is_open = False

    @property
    def reason(self) -> str:
        """Why the gate is shut."""
        return self.failure or "the store is closed"

    # -- troubles that pass ----------------------------------------------------------------------------

    def stalled(self, place: str, error: OSError) -> bool:
        """Whether an error is one that passes; it is remembered until `recovered`, and logged once a minute."""
        words = _PASSING.get(error.errno or 0)
        if words is None:
            return False
        self._troubles[place] = f"{words}: {self.root}"
        if self._seldom.may_say((place, words)):
            log.error("%s, %s wait until it has passed path=%s error=%s", words, place, self.root, error)
        return True

    def recovered(self, place: str) -> None:
        """It works again."""
        if self._troubles.pop(place, None) is not None:
            log.warning("%s work again path=%s", place, self.root)

    def is_stalled(self, place: str) -> bool:
        return place in self._troubles

    @property
    def trouble(self) -> str | None:
        """What does not work at the moment; None: everything does."""
        return next(iter(self._troubles.values()), None)


class Patience:
    """Lets a part of the store wait for the end of a trouble: what it could not write stays with it."""

    def __init__(self, gate: WriteGate, place: str) -> None:
        self._gate = gate
        self._place = place

    def has(self, error: OSError) -> bool:
        """Whether an error is one that passes."""
        return self._gate.stalled(self._place, error)

    def is_over(self) -> None:
        """It works again, or still."""
        self._gate.recovered(self._place)


def look_for_room(disk: Disk, gate: WriteGate, config: StoreConfig) -> None:
    """Puts were refused: whether one would be taken now is known without one."""
    path = os.path.join(gate.root, _PROBE)
    size = min(config.preallocate_bytes, config.commit_log_file_size)
    try:
        fd = disk.create(path, size)
        try:
            disk.allocate(fd, 0, size)
        finally:
            disk.close(fd)
            disk.unlink(path)
    except OSError as error:
        if not gate.stalled(PUTS, error):
            log.warning("looking for room failed path=%s error=%s", path, error)
    else:
        gate.recovered(PUTS)
