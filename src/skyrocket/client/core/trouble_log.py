"""One warning for a broker that does not answer, not one per queue and second; the next after a pause that grows.

a pull failed, will be tried again broker=broker-a queue=… reason=…
a pull failed, will be tried again broker=broker-a … (57 failures within 20 s)
broker broker-a answers again after 61 failures within 27 s
"""

import logging
from collections.abc import Callable
from typing import Final

FIRST_PAUSE_SECONDS: Final = 10.0
LONGEST_PAUSE_SECONDS: Final = 300.0


class _Trouble:
    __slots__ = ("began", "failures", "next_at", "pause")

    def __init__(self, now: float) -> None:
        self.began = now
        self.failures = 0
        self.pause = FIRST_PAUSE_SECONDS
        self.next_at = now


class TroubleLog:
    """Of one client; by broker and by what was tried."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._of: dict[tuple[str, str], _Trouble] = {}

    def failed(self, logger: logging.Logger, broker: str, what: str, details: str, reason: object) -> None:
        """Something was tried and failed: said the first time, then seldom."""
        now = self._monotonic()
        trouble = self._of.get((broker, what))
        if trouble is None:
            trouble = self._of[broker, what] = _Trouble(now)
        trouble.failures += 1
        if now < trouble.next_at:
            logger.debug("%s broker=%s %s reason=%s", what, broker, details, reason)
            return
        trouble.next_at = now + trouble.pause
        trouble.pause = min(2 * trouble.pause, LONGEST_PAUSE_SECONDS)
        so_far = "" if trouble.failures == 1 else f" ({trouble.failures} failures within {now - trouble.began:.0f} s)"
        logger.warning("%s broker=%s %s reason=%s%s", what, broker, details, reason, so_far)

    def works(self, logger: logging.Logger, broker: str, what: str) -> None:
        """It succeeded: cheap when there was no trouble."""
        if not self._of:
            return
        trouble = self._of.pop((broker, what), None)
        if trouble is not None:
            seconds = self._monotonic() - trouble.began
            logger.info("broker %s answers again after %d failures within %.0f s", broker, trouble.failures, seconds)
