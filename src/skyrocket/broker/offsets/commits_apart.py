"""What consumers commit at a slave while the master is gone, and giving it back when the master is there again.

The master's table is older then: a consumer that was started anew would get messages again. So a commit that is ahead
of the master's is told to it, once; what the master knows better is forgotten.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from skyrocket.broker.state.broker_set import BrokerSet
from skyrocket.format.config_files import offset_key, split_offset_key
from skyrocket.protocol.requests.offsets import UpdateConsumerOffset


class CommittedQueue(NamedTuple):
    """One queue of a group."""

    group: str
    topic: str
    queue_id: int


class CommitsApart:
    """Of one slave."""

    def __init__(self, broker_set: BrokerSet) -> None:
        self._set = broker_set
        self._commits: dict[CommittedQueue, int] = {}

    def note(self, group: str, topic: str, queue_id: int | None, queue_offset: int | None) -> None:
        """A commit was taken here; it counts while the master is not reached."""
        if self._set.is_looking and queue_id is not None and queue_offset is not None:
            self._commits[CommittedQueue(group, topic, queue_id)] = queue_offset

    def note_all(self, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """All that this slave knows counts: it has done its master's work."""
        for key, of_queues in offsets.items():
            names = split_offset_key(key)
            if names is not None:
                topic, group = names
                self._commits.update(
                    {CommittedQueue(group, topic, queue_id): offset for queue_id, offset in of_queues.items()}
                )

    def keep_newer(self, masters: Mapping[str, Mapping[int, int]]) -> dict[CommittedQueue, int]:
        """The commits that are ahead of the master's table; all others are forgotten."""
        self._commits = {
            queue: offset
            for queue, offset in self._commits.items()
            if offset > masters.get(offset_key(queue.topic, queue.group), {}).get(queue.queue_id, -1)
        }
        return self._commits

    def requests(self) -> Iterable[tuple[CommittedQueue, UpdateConsumerOffset]]:
        """What the master is to be told."""
        for queue, offset in list(self._commits.items()):
            yield (
                queue,
                UpdateConsumerOffset(
                    consumer_group=queue.group, topic=queue.topic, queue_id=queue.queue_id, commit_offset=offset
                ),
            )

    def told(self, queue: CommittedQueue) -> None:
        """The master has heard of it, or does not want to."""
        self._commits.pop(queue, None)
