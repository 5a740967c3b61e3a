"""How much somebody keeps: an estimate from the ends of its queues and the sizes of some of their messages.

All topics share one log, so nobody knows how much of it belongs to whom. A queue knows its first and its last message,
and each entry the size of its message: up to 64 entries of a queue are read, evenly from all of it. A queue of no more
than that is counted exactly.
"""

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from skyrocket.broker.core.slices import Slices
from skyrocket.broker.quotas.spenders import Spenders
from skyrocket.clock import ServiceClock
from skyrocket.format.queue_entry import BATCH_ENTRY_SIZE, ENTRY, ENTRY_SIZE, PREFILL_SIZE
from skyrocket.model.quota import STORED_BYTES
from skyrocket.protocol.errors import SystemBusy
from skyrocket.store.message_store import MessageStore
from skyrocket.store.topic_queue import TopicQueue

SAMPLED: Final = 64  # entries of a queue
PERIOD_SECONDS: Final = 5.0

_logger = logging.getLogger(__name__)


class StoredBytes:
    """Looks again every few seconds while one of them has such a limit."""

    def __init__(
        self,
        store: MessageStore,
        spenders: Spenders,
        limited: Callable[[], set[str] | None],
        keeper_of: Callable[[str], str | None],
        slices: Slices,
        clock: ServiceClock,
    ) -> None:
        self._store = store
        self._spenders = spenders
        self._limited = limited  # names with such a limit; None: all
        self._keeper_of = keeper_of  # whose a topic is; None: nobody's
        self._slices = slices
        self._clock = clock

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.sample()
            await self._clock.sleep(PERIOD_SECONDS)

    async def sample(self) -> None:
        """Estimate all that are limited."""
        limited = self._limited()
        if limited is not None and not limited:
            return
        kept = [
            (keeper, queue)
            for queue in self._store.queues
            if (keeper := self._keeper_of(queue.topic)) is not None and (limited is None or keeper in limited)
        ]
        sums: Counter[str] = Counter()
        try:
            for keeper, size in await self._slices.map(lambda pair: (pair[0], bytes_of(pair[1])), kept):
                sums[keeper] += size
        except SystemBusy as busy:
            _logger.warning("stored bytes are not counted, the numbers of before stay reason=%s", busy)
            return
        for name in sums if limited is None else limited:
            spender = self._spenders.find(name)
            if spender is not None and STORED_BYTES in spender.limits:
                spender.stored_bytes = sums[name]
        for spender in self._spenders:
            if spender.name not in sums:
                spender.stored_bytes = 0


def bytes_of(queue: TopicQueue) -> int:
    """What the messages of a queue take in the log, about."""
    if queue.simple:
        first, end, size = queue.min_offset, queue.max_offset, ENTRY_SIZE
    else:  # each entry is a batch
        size = BATCH_ENTRY_SIZE
        first, end = queue.entries.first_byte // size, queue.entries.end // size
    count = end - first
    if count <= 0:
        return 0
    picked = range(first, end) if count <= SAMPLED else [first + count * step // SAMPLED for step in range(SAMPLED)]
    sizes = [found for number in picked if (found := _size_at(queue, number * size))]
    return sum(sizes) * count // len(picked) if sizes else 0


def _size_at(queue: TopicQueue, position: int) -> int:
    data = queue.entries.read(position, ENTRY_SIZE)  # an entry of a batch begins as others do
    if len(data) < ENTRY_SIZE:  # retention was here in between
        return 0
    _, size, _ = ENTRY.unpack(data)
    return 0 if size == PREFILL_SIZE else int(size)
