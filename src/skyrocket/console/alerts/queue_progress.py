"""Queues of groups: is the lag in one of them alone, and which do not move although messages wait and clients run?"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from skyrocket.client.admin.offset_admin import QueueLag
from skyrocket.model.message_queue import MessageQueue

_QUEUES_FOR_SKEW: Final = 4  # of fewer, one may well have most; as the doctor judges
_MANY: Final = 1000  # messages


def skew_of(queues: Sequence[QueueLag]) -> float:
    """The largest share that one queue has of a topic's lag; 0 where too little waits to say so."""
    by_topic: dict[str, list[int]] = {}
    for each in queues:
        by_topic.setdefault(each.queue.topic, []).append(max(each.lag, 0))
    shares = [
        max(lags) / sum(lags) for lags in by_topic.values() if len(lags) >= _QUEUES_FOR_SKEW and sum(lags) >= _MANY
    ]
    return max(shares, default=0.0)


class QueueProgress:
    """Remembers since when the offset of each queue with waiting messages has been the same."""

    def __init__(self) -> None:
        self._unmoved: dict[tuple[str, MessageQueue], tuple[int, int]] = {}  # the offset, and when it was first seen

    def stuck_seconds(
        self, lags: Mapping[str, Sequence[QueueLag]], running: Collection[str], now_ms: int
    ) -> dict[str, float]:
        """By group: for how long its stillest queue has not moved; 0 where nothing waits, or nobody runs."""
        unmoved: dict[tuple[str, MessageQueue], tuple[int, int]] = {}
        found: dict[str, float] = {}
        for group, queues in lags.items():
            found[group] = 0.0
            if group not in running:
                continue
            for each in queues:
                if each.lag <= 0:
                    continue
                offset, since_ms = self._unmoved.get((group, each.queue), (each.consumer_offset, now_ms))
                if offset != each.consumer_offset or since_ms > now_ms:  # the clock may be set back
                    since_ms = now_ms
                unmoved[group, each.queue] = each.consumer_offset, since_ms
                found[group] = max(found[group], (now_ms - since_ms) / 1000)
        self._unmoved = unmoved
        return found
