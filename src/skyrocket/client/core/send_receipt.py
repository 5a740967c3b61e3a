"""What a broker confirmed; recall handles as applications give them back, refused in words that help."""

from dataclasses import dataclass
from enum import Enum

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


@dataclass(slots=True)
class SendReceipt:
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


def topic_and_broker(recall_handle: str) -> tuple[str, str]:
    """The topic and the broker that has the message of a handle; raises WrongUse."""
    try:
        handle = decode_handle(recall_handle)
    except DataError:
        raise WrongUse(
            f"{recall_handle!r} is not a recall handle: take it from the receipt of a delayed message"
        ) from None
    return handle.topic, handle.broker_name
