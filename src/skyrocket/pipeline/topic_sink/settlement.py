"""When tasks took stored messages for theirs: are there as many as rows?

Two equal rows in two partitions have equal ids. A task that is tried again finds one such message and cannot know
whose it is. At the commit all is known: rows that claimed a message, rows that were confirmed, and the messages that
are there. Where there are fewer messages than rows, copies are sent: equal rows make equal messages.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.exactly_once.read_back import ReadBackProducer, may_go_well_later
from skyrocket.errors import SkyrocketError
from skyrocket.format.batch import BatchElement, encode_batch
from skyrocket.format.properties import encode_properties
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_sink.identity import Scope
from skyrocket.pipeline.topic_sink.queue_senders import SendError
from skyrocket.pipeline.topic_sink.stored_ids import SETTLE_SECONDS, pages, unique_key_of

Runs = Mapping[MessageQueue, Sequence[tuple[int, int]]]
_ADDED_BY_BROKERS = ("MSG_REGION", "TRACE_ON", "CLUSTER")


class Copy(NamedTuple):
    """A message of the batch, as it was found in the topic."""

    row_id: bytes
    queue: MessageQueue
    offset: int


def missing(claimed: Iterable[bytes], copies: Sequence[Copy], confirmed: Runs) -> dict[bytes, int]:
    """How many messages of which id are missing: rows that claimed or were confirmed, less those that are there."""
    rows = Counter(claimed)
    there: Counter[bytes] = Counter()
    for copy in copies:
        if copy.row_id in rows:
            there[copy.row_id] += 1
    for copy in copies:
        if copy.row_id in there and _is_in(copy.offset, confirmed.get(copy.queue, ())):
            rows[copy.row_id] += 1
    return {row_id: count - there[row_id] for row_id, count in rows.items() if count > there[row_id]}


def _is_in(offset: int, runs: Sequence[tuple[int, int]]) -> bool:
    return any(first <= offset < first + count for first, count in runs)


class Batch(NamedTuple):
    """What is known of one topic of a batch when all its tasks have ended."""

    scope: Scope
    begins: Mapping[MessageQueue, int]
    claimed: Sequence[bytes]
    confirmed: Runs


async def settle(producer: ReadBackProducer, batch: Batch, send_timeout: float) -> int:
    """Send the copies that are missing; returns how many were. Raises SendError or ReadBackError."""
    deadline = time.monotonic() + send_timeout
    wanted: int | None = None
    while True:
        copies = await _copies(producer, batch)
        lacking = missing(batch.claimed, copies, batch.confirmed)
        wanted = sum(lacking.values()) if wanted is None else wanted
        places = {copy.row_id: copy for copy in copies}
        lost = [row_id for row_id in lacking if row_id not in places]
        if lost:
            raise SendError(f"{len(lost)} messages that tasks had found are not there any more: was the topic deleted?")
        try:
            for row_id, count in lacking.items():
                await _send_again(producer, places[row_id], count)
        except SkyrocketError as error:
            if not may_go_well_later(error) or time.monotonic() >= deadline:
                raise SendError(f"copies of equal rows could not be sent: {error}") from error
            await asyncio.sleep(SETTLE_SECONDS)  # then count again: it may be there all the same
        else:
            return wanted


async def _copies(producer: ReadBackProducer, batch: Batch) -> list[Copy]:
    """The messages in the topic that rows have claimed, and those that are equal to them."""
    wanted = set(batch.claimed)
    found: list[Copy] = []
    for queue, begin in batch.begins.items():
        async for page in pages(producer, queue, begin):
            ids = batch.scope.recognised(map(unique_key_of, page))
            found += [
                Copy(row_id, queue, message.queue_offset)
                for message, row_id in zip(page, ids, strict=True)
                if row_id in wanted
            ]
    return found


async def _send_again(producer: ReadBackProducer, copy: Copy, count: int) -> None:
    page = await producer.page(copy.queue, copy.offset)
    message = next(each for each in page.messages if each.queue_offset == copy.offset)
    await producer.send_encoded(copy.queue, encode_batch([_element(message)] * count), timeout=15.0)


def _element(message: ReceivedMessage) -> BatchElement:
    own = {name: value for name, value in message.properties.items() if name not in _ADDED_BY_BROKERS}
    return BatchElement(message.flag, message.body, encode_properties(own))
