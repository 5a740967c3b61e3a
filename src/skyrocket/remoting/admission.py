"""Bounds per class of requests, so that a flood of one kind does not starve the others; and RocketMQ's words for busy.

A request is in hand from its arrival until its answer is there. What is answered at once never counts; what waits (a
group commit, a held pull, a task) does. RocketMQ has a pool with a bounded queue for each class instead.
"""

from collections.abc import Callable

from skyrocket.protocol.errors import SystemBusy

OVERLOAD = "[OVERLOAD]system busy, start flow control for a while"
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

    `rejects` is asked for every request of the class; when it says yes the request is refused before its handler.
    """

    __slots__ = ("in_hand", "limit", "name", "refused", "rejects")

    def __init__(self, name: str, limit: int, rejects: Callable[[], bool] | None = None) -> None:
        assert limit > 0
        self.name = name
        self.limit = limit
        self.rejects = rejects
        self.in_hand = 0
        self.refused = 0

    def admit(self) -> None:
        """Raises SystemBusy when no more requests are taken."""
        if self.rejects is not None and self.rejects():
            self.refused += 1
            raise SystemBusy(REJECTED)
        if self.in_hand >= self.limit:
            self.refused += 1
            raise SystemBusy(OVERLOAD)
