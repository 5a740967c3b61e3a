"""What of a batch is stored already, read back from the topic itself; so it holds for every RocketMQ broker."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.exactly_once.read_back import Page, ReadBackProducer, may_go_well_later
from skyrocket.errors import SkyrocketError
from skyrocket.model import property_names
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_sink.identity import IDS, Ids, Scope

# An attempt that has ended may have a request in the broker's hands, and brokers show a message a moment after they
# have confirmed it. Counted from the moment at which the broker answers again.
SETTLE_SECONDS: Final = 1.0
_ATTEMPTS: Final = 30
_PAUSE: Final = 0.5


class ReadBackError(SkyrocketError):
    """What is stored could not be found out, so nothing may be sent."""


class StoredIds:
    """How many messages of each id are there and not yet claimed by a row."""

    def __init__(self, ids: Ids) -> None:
        self._ids, self._counts = np.unique(ids, return_counts=True)

    def __len__(self) -> int:
        return int(self._counts.sum())

    def claim(self, wanted: Ids) -> npt.NDArray[np.bool_]:
        """Which of some rows are stored; a message stands for one row."""
        claimed = np.zeros(len(wanted), np.bool_)
        if not len(self._ids):
            return claimed
        places = np.minimum(np.searchsorted(self._ids, wanted), len(self._ids) - 1)
        for index in np.flatnonzero(self._ids[places] == wanted).tolist():
            place = places[index]
            if self._counts[place] > 0:
                self._counts[place] -= 1
                claimed[index] = True
        return claimed


async def stored_ids(producer: ReadBackProducer, scope: Scope, begins: Mapping[MessageQueue, int]) -> StoredIds:
    """The messages of a scope that queues have from some offsets on, up to now."""
    found: list[bytes] = []
    for queue in begins:
        await _end_of(producer, queue)
    await asyncio.sleep(SETTLE_SECONDS)
    for queue, begin in begins.items():
        async for page in pages(producer, queue, begin):
            found += [each for each in scope.recognised(map(unique_key_of, page)) if each]
    return StoredIds(np.array(found, IDS))


async def pages(producer: ReadBackProducer, queue: MessageQueue, begin: int) -> AsyncIterator[list[ReceivedMessage]]:
    """All messages of a queue from an offset to its present end; raises ReadBackError."""
    end = await _end_of(producer, queue)
    offset = begin
    while offset < end:
        page = await _page(producer, queue, offset)
        yield [message for message in page.messages if message.queue_offset < end]
        offset = page.next_offset


async def _end_of(producer: ReadBackProducer, queue: MessageQueue) -> int:
    for attempt in range(_ATTEMPTS):
        try:
            return await producer.end_of(queue)
        except SkyrocketError as error:
            await _pause_or_raise(queue, error, attempt)
    raise AssertionError("the last attempt raises")


async def _page(producer: ReadBackProducer, queue: MessageQueue, offset: int) -> Page:
    for attempt in range(_ATTEMPTS):
        try:
            page = await producer.page(queue, offset)
        except SkyrocketError as error:
            await _pause_or_raise(queue, error, attempt)
            continue
        if page.next_offset > offset:
            return page
        await asyncio.sleep(_PAUSE)  # the end is known and not yet to be read: the broker is behind with its queue
    raise ReadBackError(f"{queue} tells nothing from offset {offset} on, although its end is later: check the broker")


async def _pause_or_raise(queue: MessageQueue, error: SkyrocketError, attempt: int) -> None:
    if attempt == _ATTEMPTS - 1 or not may_go_well_later(error):
        raise ReadBackError(
            f"{queue} could not be read, so it is not known what of the batch is stored, and nothing is sent: {error}. "
            "A broker that is away must come back first; and idempotent writing needs the right to read the topic, in "
            "the name of the option consumerGroup (ACL: SUB)"
        ) from error
    await asyncio.sleep(_PAUSE)


def unique_key_of(message: ReceivedMessage) -> str:
    """The producer's id; "" without one."""
    return message.properties.get(property_names.UNIQUE_KEY, "")
