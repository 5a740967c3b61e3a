"""Bounds per class of requests, so that a flood of one kind does not starve the others; and RocketMQ's words for busy.

A request is in hand from its arrival until its answer is there. What is answered at once never counts; what waits (a
group commit, a held pull, a task) does. RocketMQ has a pool with a bounded queue for each class instead.

Nobody takes all places of a class: a peer may have as many as are still free, and the last tenth is for those who have
hardly any. So one takes half at most, twelve who want as much as they can get a thirteenth each, and who comes after
them is served.
"""

from skyrocket.protocol.errors import SystemBusy

OVERLOAD = "[OVERLOAD]system busy, start flow control for a while"
_IN_ANY_CASE = 16  # requests that a peer may have while there is any place
REJECTED = "[REJECTREQUEST]system busy, start flow control for a while"


def waited_too_long(waited_ms: int, in_queue: int) -> SystemBusy:
    """For a request that was not begun within the limit of its class."""
    return SystemBusy(_cleaned("TIMEOUT_CLEAN_QUEUE", waited_ms, in_queue))


def page_cache_busy(waited_ms: int, in_queue: int) -> SystemBusy:
    """For a request that waits while the log cannot be written."""
    return SystemBusy(_cleaned("PCBUSY_CLEAN_QUEUE", waited_ms, in_queue))


def _cleaned(tag: str, waited_ms: int, in_queue: int) -> str:
    return (
        f"[{tag}]broker busy, start flow control for a while, period in queue: {waited_ms}ms, size of queue: {in_queue}"
    )


class RequestClass:
    """Requests that share one bound.

    While `is_rejecting` is set every request of the class is refused before its handler. It is a plain attribute that
    somebody sets when things change (at the end of a turn, say), because it is looked at for every message.
    `wait_limit_ms` is how long a request may wait to be begun; None: for ever.
    """

    __slots__ = (
        "_limit",
        "crowded_from",
        "in_hand",
        "is_rejecting",
        "name",
        "refused",
        "rejection",
        "wait_limit_ms",
    )

    def __init__(self, name: str, limit: int, wait_limit_ms: int | None = None) -> None:
        assert limit > 0
        self.name = name
        self.limit = limit
        self.wait_limit_ms = wait_limit_ms
        self.is_rejecting = False
        self.rejection = REJECTED  # what a request hears while the class is rejecting
        self.in_hand = 0
        self.refused = 0  # by the bound, by a rejection, or because they had waited too long

    @property
    def limit(self) -> int:
        """How many requests may be in hand."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        self._limit = limit
        self.crowded_from = limit // 2  # before that nobody can have more than are free

    def admit(self, unanswered: int) -> None:
        """Raises SystemBusy when no more requests are taken, or no more of a peer that has so many without answers."""
        if self.is_rejecting:
            self.refused += 1
            raise SystemBusy(self.rejection)
        free = self._limit - self.in_hand
        if free <= 0 or unanswered >= max(free - self._limit // 10, _IN_ANY_CASE):
            self.refused += 1
            raise SystemBusy(OVERLOAD)

    def overdue(self, waited_ms: int, behind: int) -> SystemBusy | None:
        """The refusal of a request that has waited for so long; None when it may wait on. `behind` wait after it."""
        if self.wait_limit_ms is None or waited_ms < self.wait_limit_ms:
            return None
        self.refused += 1
        return waited_too_long(waited_ms, behind)
