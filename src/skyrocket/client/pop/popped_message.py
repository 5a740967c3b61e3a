"""Popped messages: what a broker handed out for a while, with the receipt by which each is acknowledged.

A pop's answer lists the messages beside their bytes, in the same order, queue by queue:

    startOffsetInfo   0 2 17; 1 0 4          mark, queue, offset at which the queue's check point begins
    msgOffsetInfo     0 2 17,18; 1 0 4       mark, queue, offsets of the messages

The mark says whether a queue is one of the topic (0) or of the group's retry topic (1, 2).
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from skyrocket.client.core.message import ReceivedMessage, decode_messages
from skyrocket.errors import DataError
from skyrocket.model.pop_retry import real_topic
from skyrocket.model.property_names import POP_RECEIPT
from skyrocket.protocol.receipt_handle import ReceiptHandle
from skyrocket.protocol.requests.pop import PopMessageAnswer

_PART = re.compile(r"(\S+) ([0-9]+) ([0-9]+(?:,[0-9]+)*)")


class PoppedMessage(ReceivedMessage):
    """A message in this consumer's hands until it is acknowledged, or until its time is over."""

    __slots__ = ("popped_topic", "receipt", "visible_at")

    popped_topic: str  # that was asked for, with its namespace
    receipt: ReceiptHandle
    visible_at: float  # by our monotonic clock: from then on others may get it

    @classmethod
    def of(
        cls, message: ReceivedMessage, topic: str, group: str, receipt: ReceiptHandle, visible_at: float
    ) -> "PoppedMessage":
        """A decoded message with its receipt; it comes from the topic that was asked for, or from a retry topic."""
        popped = cls.__new__(cls)
        for name in ReceivedMessage.__slots__:
            setattr(popped, name, getattr(message, name))
        popped.topic = popped.popped_topic = topic
        popped.stored_topic = real_topic(topic, group, receipt.retry_mark)
        popped.receipt = receipt
        popped.visible_at = visible_at
        if POP_RECEIPT.encode() in popped._property_bytes:
            popped.properties.pop(POP_RECEIPT, None)  # the receipt is ours to know; the message goes on without it
        return popped


class _QueueEntry(NamedTuple):
    mark: str
    queue_id: int
    queue_offset: int


def popped_messages(
    body: bytes | memoryview, answer: PopMessageAnswer, topic: str, group: str, broker_name: str, visible_at: float
) -> list[PoppedMessage]:
    """The messages of a pop's answer; raises DataError where bytes and lists contradict each other."""
    starts = {(mark, queue_id): int(rest) for mark, queue_id, rest in _parts(answer.start_offset_info)}
    entries = [
        _QueueEntry(mark, queue_id, int(offset))
        for mark, queue_id, rest in _parts(answer.msg_offset_info)
        for offset in rest.split(",")
    ]
    messages = decode_messages(body, broker_name)
    if len(messages) != len(entries):
        raise DataError(
            f"broker {broker_name} popped {len(messages)} messages, but lists {len(entries)} offsets of them"
        )
    found = []
    for message, (mark, queue_id, offset) in zip(messages, entries, strict=True):
        if (message.queue_id, message.queue_offset) != (queue_id, offset) or (mark, queue_id) not in starts:
            raise DataError(
                f"broker {broker_name} lists a popped message at queue {queue_id} offset {offset}, but there is one of "
                f"queue {message.queue_id} offset {message.queue_offset}"
            )
        receipt = ReceiptHandle(
            starts[mark, queue_id],
            answer.pop_time,
            answer.invisible_time,
            answer.revive_qid,
            mark,
            broker_name,
            queue_id,
            offset,
        )
        found.append(PoppedMessage.of(message, topic, group, receipt, visible_at))
    return found


def _parts(text: str | None) -> Iterator[tuple[str, int, str]]:
    for part in filter(None, (text or "").split(";")):
        words = _PART.fullmatch(part)
        if words is None:
            raise DataError(
                f"{part!r} in a pop's answer is not a list of offsets: mark, queue and offsets were expected"
            )
        yield words[1], int(words[2]), words[3]
