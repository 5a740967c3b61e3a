"""Where a group pops next: the committed offset, or where a group without one begins."""

from typing import Final

from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.store.message_store import MessageStore

FROM_MIN: Final = 0  # initMode of a pop


class PopOffsets:
    """Reads the offset table, and gives groups that pop for the first time their beginning."""

    def __init__(self, store: MessageStore, offsets: ConsumerOffsetTable) -> None:
        self.table = offsets
        self._store = store

    def next(self, group: str, topic: str, queue_id: int, init_mode: int) -> int:
        """Where a pop reads; a beginning is committed at once."""
        committed = self.table.committed(group, topic, queue_id)
        if committed is not None and committed >= 0:
            return committed
        beginning = self._beginning(topic, queue_id, init_mode)
        self.table.commit(group, topic, queue_id, beginning)
        return beginning

    def known(self, group: str, topic: str, queue_id: int) -> int:
        """Where a pop would begin, for those who only look: nothing is committed, a new group is at the first one."""
        committed = self.table.committed(group, topic, queue_id)
        return committed if committed is not None and committed >= 0 else self._least(topic, queue_id)

    def _beginning(self, topic: str, queue_id: int, init_mode: int) -> int:
        least = self._least(topic, queue_id)
        if init_mode == FROM_MIN or topic.startswith(RETRY_PREFIX) or self._is_young(topic, queue_id, least):
            return least
        return max(self._store.max_offset(topic, queue_id) - 1, 0)

    def _is_young(self, topic: str, queue_id: int, least: int) -> bool:
        """Whether the first message that the queue ever had is still in memory: nobody has missed anything yet."""
        return least == 0 and not self._store.get(topic, queue_id, 0, 1).suggest_slave

    def _least(self, topic: str, queue_id: int) -> int:
        return max(self._store.min_offset(topic, queue_id), 0)
