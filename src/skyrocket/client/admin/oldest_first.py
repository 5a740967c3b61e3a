"""Messages of several queues in one line, by the time at which they were stored."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from heapq import heapify, heappop, heapreplace

from skyrocket.client.core.message import ReceivedMessage

Reader = AsyncGenerator[ReceivedMessage, None]


async def begun(readers: Iterable[Reader]) -> list[tuple[ReceivedMessage, Reader]]:
    """The first message of each that has one."""
    return [(first, reader) for reader in readers if (first := await anext(reader, None)) is not None]


async def begun_together(readers: Sequence[Reader]) -> list[tuple[ReceivedMessage, Reader]]:
    """The same, side by side; raises what the first of them does that fails."""
    firsts = await asyncio.gather(*(begun([reader]) for reader in readers), return_exceptions=True)
    found: list[tuple[ReceivedMessage, Reader]] = []
    for first in firsts:
        if isinstance(first, BaseException):
            raise first
        found += first
    return found


async def oldest_first(readers: Iterable[tuple[ReceivedMessage, Reader]]) -> Reader:
    """All that they have; of each no more is held than it holds itself."""
    heads = list(readers)
    heap = [(*_age(message), number, message) for number, (message, _) in enumerate(heads)]
    heapify(heap)
    while heap:
        *_, number, message = heap[0]
        yield message
        following = await anext(heads[number][1], None)
        if following is None:
            heappop(heap)
        else:
            heapreplace(heap, (*_age(following), number, following))


def _age(message: ReceivedMessage) -> tuple[int, str, int]:
    """Within a millisecond a broker's log knows what came first."""
    return message.store_timestamp, message.broker_name, message.physical_offset
