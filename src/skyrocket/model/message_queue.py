"""One queue of a topic on one broker."""

from typing import NamedTuple


class MessageQueue(NamedTuple):
    """Sorted by topic, broker, number: the order in which consumers share queues among them."""

    topic: str
    broker_name: str
    queue_id: int
