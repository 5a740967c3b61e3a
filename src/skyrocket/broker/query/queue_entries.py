"""The entries of a queue as they are on disk, and what a group subscribes to."""

from typing import Final

from skyrocket.broker.state.connected_consumers import ConnectedConsumers
from skyrocket.format.queue_entry import QueueEntry
from skyrocket.protocol.bodies.tables import QueueEntries, QueueEntryInfo
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.query import QueryConsumeQueue
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import UNSET_REMARK, Answered, Handlers, serve
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.message_store import MessageStore

MOST_ENTRIES: Final = 10_000


class QueueEntryProcessor:
    """Reads queues for tools."""

    def __init__(self, store: MessageStore, consumers: ConnectedConsumers[Peer]) -> None:
        self._store = store
        self._consumers = consumers

    def handlers(self) -> Handlers:
        return (serve(QueryConsumeQueue, self.query),)

    def query(self, _: Peer, header: QueryConsumeQueue, __: Body) -> Answered:
        """Entries from an index on; where there is no entry the answer is a success with a remark and no body."""
        queue = self._store.queues.get(header.topic, header.queue_id)
        entries = _entries(queue, header) if isinstance(queue, ConsumeQueue) else []
        if queue is None or not entries:
            missing = f"Index {header.index} of {header.queue_id}@{header.topic} is not exist!"
            return Answered(remark=missing)
        group, subscription, filter_data = header.consumer_group, None, None
        if group is not None:
            subscription = self._consumers.find_subscription(group, header.topic)
            filter_data = "null" if subscription is not None else f"{group}@{header.topic} is not online!"
        found = QueueEntries(
            min_index=queue.min_offset,
            max_index=queue.max_offset,
            # RocketMQ: `eval` stays false for entries without an extended part, whatever the subscription is.
            entries=tuple(QueueEntryInfo(entry.physical_offset, entry.size, entry.tags_code) for entry in entries),
            subscription=subscription,
            filter_data=filter_data,
        )
        return Answered(body=found, remark=UNSET_REMARK)


def _entries(queue: ConsumeQueue, header: QueryConsumeQueue) -> list[QueueEntry]:
    """From the wanted one on; none at all when that one is not there."""
    if queue.entry(header.index) is None:
        return []
    last = min(header.index + min(header.count, MOST_ENTRIES), queue.max_offset)
    found = (queue.entry(number) for number in range(header.index, last))
    return [entry for entry in found if entry is not None]
