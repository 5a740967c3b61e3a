"""What a broker confirmed; recall handles as applications give them back, refused in words that help."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from skyrocket.client.core.errors import WrongUse
from skyrocket.errors import DataError
from skyrocket.format.recall_handle import decode_handle
from skyrocket.model.message_queue import MessageQueue


class SendStatus(Enum):
    """How far the message has come; all of these mean that the master has it."""

    SEND_OK = 0
    FLUSH_DISK_TIMEOUT = 10  # in memory; not known to be on disk
    SLAVE_NOT_AVAILABLE = 11  # stored without a slave
    FLUSH_SLAVE_TIMEOUT = 12  # stored; not known to be on a slave


STATUS_OF_CODE = {status.value: status for status in SendStatus}


class _OfBatch:
    """A receipt that is filled in when somebody reads it: most senders only want to know that there is one."""

    __slots__ = ("_batch", "_number")

    _batch: "BatchReceipt"
    _number: int

    if not TYPE_CHECKING:  # for type checkers a receipt has what it says, and nothing else

        def __getattr__(self, name):
            if name not in SendReceipt.__slots__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            self._batch.fill(self, self._number)
            return getattr(self, name)


@dataclass(slots=True)
class SendReceipt(_OfBatch):
    """One message that a broker has."""

    status: SendStatus
    message_id: str  # the unique key, also for retries of the same message
    offset_message_id: str  # where the record is
    queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None
    region: str | None = None
    trace_on: bool = True
    recall_handle: str | None = None
    attempts: int = 1
    replicas: int | None = None  # brokers of a set that have it; None where senders do not wait for slaves

    @property
    def is_durable(self) -> bool:
        """Whether the broker has done all that it is configured to do for durability."""
        return self.status is SendStatus.SEND_OK


class BatchReceipt:
    """What a broker confirmed of messages that came in one request."""

    __slots__ = ("_ids", "_keys", "whole")

    def __init__(self, whole: SendReceipt, keys: Sequence[str]) -> None:
        self.whole = whole  # its offset is that of the first message, its ids are those of all
        self._keys = keys
        self._ids: list[str] | None = None

    def member(self, number: int) -> SendReceipt:
        """The receipt of one message."""
        receipt = _new(SendReceipt)
        receipt._batch = self  # type: ignore[misc]  # mypy overlooks the slots of the base of a dataclass
        receipt._number = number  # type: ignore[misc]
        return receipt

    def fill(self, receipt: SendReceipt, number: int) -> None:
        """Offsets count on, and each has an id of its own."""
        whole, ids = self.whole, self._ids
        if ids is None:
            ids = self._ids = whole.offset_message_id.split(",")
        SendReceipt.__init__(
            receipt,
            whole.status,
            self._keys[number],
            ids[number] if number < len(ids) else whole.offset_message_id,  # brokers may leave them out
            whole.queue,
            whole.queue_offset + number,
            whole.transaction_id,
            whole.region,
            whole.trace_on,
            None,
            whole.attempts,
            whole.replicas,
        )
        del receipt._batch  # who keeps one receipt does not keep the ids of all


_new = object.__new__


def topic_and_broker(recall_handle: str) -> tuple[str, str]:
    """The topic and the broker that has the message of a handle; raises WrongUse."""
    try:
        handle = decode_handle(recall_handle)
    except DataError:
        raise WrongUse(
            f"{recall_handle!r} is not a recall handle: take it from the receipt of a delayed message"
        ) from None
    return handle.topic, handle.broker_name
