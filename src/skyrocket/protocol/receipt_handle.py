"""The receipt of a popped message (extraInfo, POP_CK), and the lists of offsets in a pop's answer.

    startOffset popTime invisibleTime reviveQueue retryMark broker queue messageOffset

Parts are separated by blanks. The last may be missing; a proxy adds a ninth, the physical offset. With revive queue 999
the message was popped in order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from skyrocket.protocol.errors import SystemFailure

ORDERLY_REVIVE_QUEUE: Final = 999
_LEAST_PARTS: Final = 7
_INT_MAX: Final = (1 << 31) - 1
_LONG_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class ReceiptHandle:
    """What a consumer shows when it acknowledges a message or hides it longer."""

    start_offset: int  # of the check point that the message belongs to
    pop_time: int
    invisible_ms: int
    revive_queue: int
    retry_mark: str
    broker_name: str
    queue_id: int
    queue_offset: int = -1

    @property
    def is_orderly(self) -> bool:
        return self.revive_queue == ORDERLY_REVIVE_QUEUE

    def text(self) -> str:
        """As it travels."""
        parts = (self.start_offset, self.pop_time, self.invisible_ms, self.revive_queue)
        last = () if self.queue_offset < 0 else (self.queue_offset,)
        return " ".join(map(str, (*parts, self.retry_mark, self.broker_name, self.queue_id, *last)))

    @classmethod
    def parse(cls, text: str) -> "ReceiptHandle":
        """Raises SystemFailure, which is the code that RocketMQ answers."""
        parts = text.split(" ")
        if len(parts) < _LEAST_PARTS or "\x01" in text or "\x02" in text:
            raise SystemFailure(
                f"extraInfo is {text[:200]!r}, but a receipt has at least seven parts: startOffset popTime "
                f"invisibleTime reviveQueue retryMark broker queue. Send the receipt that came with the message"
            )
        try:
            numbers = [int(part) for part in (*parts[:4], parts[6], *parts[7:8])]
        except ValueError:
            raise SystemFailure(f"extraInfo is {text[:200]!r}: offsets, times and queues must be numbers") from None
        start_offset, pop_time, invisible_ms, revive_queue, queue_id = numbers[:5]
        if max(map(abs, numbers)) > _LONG_MAX or not (0 <= revive_queue <= _INT_MAX and 0 <= queue_id <= _INT_MAX):
            raise SystemFailure(f"extraInfo is {text[:200]!r}: a number is out of range")
        offset = numbers[5] if len(numbers) > 5 else -1
        return cls(start_offset, pop_time, invisible_ms, revive_queue, parts[4], parts[5], queue_id, offset)


def start_offset_text(mark: str, queue_id: int, start_offset: int) -> str:
    """One part of startOffsetInfo."""
    return f"{mark} {queue_id} {start_offset}"


def message_offsets_text(mark: str, queue_id: int, offsets: Iterable[int]) -> str:
    """One part of msgOffsetInfo."""
    return f"{mark} {queue_id} {','.join(map(str, offsets))}"


def order_count_texts(mark: str, queue_id: int, counts: Sequence[tuple[int, int]], least: int) -> list[str]:
    """Parts of orderCountInfo: how often messages of a queue were consumed before, and the least of it."""
    return [*(f"{mark} qo{queue_id}%{offset} {count}" for offset, count in counts), f"{mark} {queue_id} {least}"]
