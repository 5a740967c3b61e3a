"""Whether the store takes messages, and if not, why."""

import logging

from skyrocket.errors import StoreFailed

log = logging.getLogger(__name__)


class WriteGate:
    """Open while the store runs; shut for good when the disk has failed."""

    def __init__(self, root: str) -> None:
        self.is_open = False
        self.failure: str | None = None  # why no more writes are taken
        self._root = root

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
