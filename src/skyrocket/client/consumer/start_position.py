"""Where a consumer begins in a queue that it was given."""

from datetime import datetime
from enum import Enum
from typing import Any, Final

from skyrocket.client.consumer.offset_store import OffsetStore
from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.instance import ClientInstance
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.protocol.requests.header import Request
from skyrocket.protocol.requests.offsets import GetMaxOffset, GetMinOffset, SearchOffsetByTimestamp

_TIMEOUT: Final = 6.0
_HALF_AN_HOUR_MS: Final = 30 * 60 * 1000


class ConsumeFromWhere(Enum):
    """For a group that has no offset yet."""

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class MessageModel(Enum):
    """Whether the members of a group share the messages, or each gets all."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


def since_ms(consume_timestamp: datetime | str | None, started_ms: int) -> int:
    """From when on CONSUME_FROM_TIMESTAMP consumes: half an hour before the consumer started unless it says so."""
    return started_ms - _HALF_AN_HOUR_MS if consume_timestamp is None else timestamp_ms(consume_timestamp)


def timestamp_ms(moment: datetime | str) -> int:
    """A moment, also in RocketMQ's form `yyyyMMddHHmmss` (local time); raises WrongUse."""
    if isinstance(moment, str):
        try:
            moment = datetime.strptime(moment, "%Y%m%d%H%M%S").astimezone()
        except ValueError:
            raise WrongUse(f"consume_timestamp {moment!r} is not of the form 20260131235959") from None
    return round(moment.timestamp() * 1000)


async def start_offset(
    instance: ClientInstance, queue: MessageQueue, store: OffsetStore, where: ConsumeFromWhere, from_ms: int
) -> int:
    """The stored offset, else what `where` says; raises ClientError or RemotingError when nobody can tell."""
    stored = await store.stored(queue)
    if stored is not None and stored >= 0:
        return stored
    is_retry = queue.topic.startswith(RETRY_PREFIX)
    if where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
        return 0  # corrected by the broker when the queue begins later
    if where is ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET:
        return 0 if is_retry else await max_offset(instance, queue)
    return await max_offset(instance, queue) if is_retry else await offset_at(instance, queue, from_ms)


async def max_offset(instance: ClientInstance, queue: MessageQueue, *, timeout: float = _TIMEOUT) -> int:
    """The offset of the next message."""
    request = GetMaxOffset(topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name)
    return await _told(instance, queue, request, "asking for the end of", timeout)


async def min_offset(instance: ClientInstance, queue: MessageQueue, *, timeout: float = _TIMEOUT) -> int:
    """The offset of the first message that is still there."""
    request = GetMinOffset(topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name)
    return await _told(instance, queue, request, "asking for the beginning of", timeout)


async def offset_at(instance: ClientInstance, queue: MessageQueue, at_ms: int, *, timeout: float = _TIMEOUT) -> int:
    """The first message that was stored at or after a moment."""
    request = SearchOffsetByTimestamp(
        topic=queue.topic, queue_id=queue.queue_id, timestamp=at_ms, broker_name=queue.broker_name
    )
    return await _told(instance, queue, request, "looking for a time in", timeout)


async def _told(
    instance: ClientInstance, queue: MessageQueue, request: Request[Any], doing: str, timeout: float
) -> int:
    """The offset of which the queue's master says that it is the one."""
    doing = f"{doing} queue {queue.broker_name}:{queue.queue_id} of {queue.topic}"
    reply = await instance.ask(await instance.master_of(queue), request, doing=doing, timeout=timeout)
    return int(reply.header.offset)
