"""Whether the store takes messages, and if not, why.

A failed fsync shuts it for good: what is on disk is not known any more. A full disk, a read-only file system and
a process without file descriptors lose nothing: they are troubles that pass, each with the place where it was met.
"""

import errno
import logging
from typing import Final

from skyrocket.clock import Clock, Seldom
from skyrocket.errors import StoreFailed

log = logging.getLogger(__name__)

NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})
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
        self._root = root
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
                f"writing to {self._root} failed ({error}): no more messages are taken; "
                "repair the disk and start again, what was acknowledged as flushed is kept"
            )
            log.error("store failed, refusing writes path=%s error=%s", self._root, error)
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
        self._troubles[place] = f"{words}: {self._root}"
        if self._seldom.may_say((place, words)):
            log.error("%s, %s wait until it has passed path=%s error=%s", words, place, self._root, error)
        return True

    def recovered(self, place: str) -> None:
        """It works again."""
        if self._troubles.pop(place, None) is not None:
            log.warning("%s work again path=%s", place, self._root)

    def is_stalled(self, place: str) -> bool:
        return place in self._troubles

    @property
    def trouble(self) -> str | None:
        """What does not work at the moment; None: everything does."""
        return next(iter(self._troubles.values()), None)
