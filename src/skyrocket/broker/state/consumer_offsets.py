"""How far each group has consumed each queue.

Three tables by `topic@group` and queue id: committed offsets, which are saved; offsets last pulled; and resets that
wait for the consumer's next pull, until which commits are ignored.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.clock import Clock
from skyrocket.format.config_files import ConsumerOffsets, offset_key, split_offset_key, topics_by_group
from skyrocket.model.data_version import DataVersion
from skyrocket.protocol.errors import InvalidParameter
from skyrocket.store.config_file import ConfigFile

logger = logging.getLogger(__name__)

VERSION_STEP = 500
NO_CORRECTION = (1 << 63) - 1

_Table = dict[str, dict[int, int]]


class ConsumerOffsetTable(SavedTable[ConsumerOffsets]):
    """The offsets of all groups; the owner saves every few seconds while it is `dirty`."""

    def __init__(
        self,
        file: ConfigFile[ConsumerOffsets],
        clock: Clock,
        *,
        version_step: int = VERSION_STEP,
        server_side_reset: bool = True,
    ) -> None:
        super().__init__(file, clock, save_at_once=False)
        assert version_step > 0
        self.server_side_reset = server_side_reset
        self._version_step = version_step
        self._commits = 0
        self._offsets: _Table = {}
        self._pulled: _Table = {}
        self._resets: _Table = {}
        self._topics_of_group: dict[str, dict[str, None]] = {}
        self._loaded = ConsumerOffsets()  # for what it holds beside the offsets

    def content(self) -> ConsumerOffsets:
        return ConsumerOffsets(
            self.data_version,
            {key: dict(queues) for key, queues in self._offsets.items()},
            {group: list(topics) for group, topics in self._topics_of_group.items()},
            self._loaded.light_offsets,
            self._loaded.unknown,
        )

    def _take(self, content: ConsumerOffsets) -> None:
        self._loaded = content
        self.data_version = content.data_version
        self._offsets = {key: dict(queues) for key, queues in content.offsets.items()}
        by_group = topics_by_group(self._offsets, content.topics_of_group)
        self._topics_of_group = {group: dict.fromkeys(topics) for group, topics in by_group.items()}

    # Commit and query

    def commit(self, group: str, topic: str, queue_id: int | None, queue_offset: int | None) -> bool:
        """Remember where a group goes on; any value is taken, smaller ones too.

        False: ignored, because a reset waits for the consumer's next pull. Raises InvalidParameter when a number is
        missing.
        """
        if queue_id is None:
            raise InvalidParameter(f"QueueId is null, topic is {topic}")
        if queue_offset is None:
            raise InvalidParameter(f"Offset is null, topic is {topic}")
        if self._resets and self.waiting_reset(group, topic, queue_id) is not None:
            return False
        self.commit_at(offset_key(topic, group), queue_id, queue_offset)
        return True

    def commit_at(self, key: str, queue_id: int, queue_offset: int) -> None:
        """The same for who knows the key of group and topic, while no reset waits."""
        queues = self._offsets.get(key)
        if queues is None:
            queues = self._add(key)
        before = queues.get(queue_id)
        if before is not None and queue_offset < before:
            topic, group = _parts(key)
            logger.warning(
                "consumer offset goes back group=%s topic=%s queue=%d from=%d to=%d",
                group,
                topic,
                queue_id,
                before,
                queue_offset,
            )
        queues[queue_id] = queue_offset
        self._count_commit()

    def _count_commit(self) -> None:
        self.dirty = True
        self._commits += 1
        if self._commits % self._version_step == 0:
            self._next_version()

    def committed(self, group: str, topic: str, queue_id: int) -> int | None:
        """Where a group goes on, or will after a reset that waits; None if it never committed."""
        reset = self.waiting_reset(group, topic, queue_id) if self._resets else None
        if reset is not None:
            return reset
        return self._offsets.get(offset_key(topic, group), {}).get(queue_id)

    def committed_queues(self, group: str, topic: str) -> Mapping[int, int]:
        """All queues of a topic that a group has committed; a copy."""
        return dict(self._offsets.get(offset_key(topic, group), {}))

    def note_pull(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        """Remember what a group asked for last; never saved."""
        self.note_pull_at(offset_key(topic, group), queue_id, queue_offset)

    def note_pull_at(self, key: str, queue_id: int, queue_offset: int) -> None:
        """The same for who knows the key of group and topic."""
        queues = self._pulled.get(key)
        if queues is None:
            queues = self._pulled[key] = {}
        queues[queue_id] = queue_offset

    def pulled(self, group: str, topic: str, queue_id: int) -> int | None:
        """What a group asked for last."""
        return self._pulled.get(offset_key(topic, group), {}).get(queue_id)

    # Resets

    def reset(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Make a group go on elsewhere, queue by queue; its next pull of each queue is told so."""
        if not offsets:
            return
        key = offset_key(topic, group)
        self._resets.setdefault(key, {}).update(offsets)
        queues = self._offsets.get(key)
        (self._add(key) if queues is None else queues).update(offsets)
        self.dirty = True

    def has_reset_at(self, key: str) -> bool:
        """Whether a reset waits for some queue of a topic and group, known by the key of their offsets."""
        return key in self._resets

    def waiting_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """The reset that the next pull of a queue will be told."""
        if not self.server_side_reset:
            return None
        return self._resets.get(offset_key(topic, group), {}).get(queue_id)

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Take the reset that waits for a queue: its consumer is told now, and not again."""
        if not self._resets:
            return None
        key = offset_key(topic, group)
        queues = self._resets.get(key)
        if queues is None:
            return None
        taken = queues.pop(queue_id, None)
        if not queues:
            del self._resets[key]
        return taken if self.server_side_reset else None

    # Who consumes what

    def topics_of(self, group: str) -> tuple[str, ...]:
        """Topics that a group has committed offsets of."""
        return tuple(self._topics_of_group.get(group, ()))

    def groups_of(self, topic: str) -> tuple[str, ...]:
        """Groups that have committed offsets of a topic."""
        return tuple(group for group, topics in self._topics_of_group.items() if topic in topics)

    def correction_offsets(
        self, topic: str, compare_group: str, left_out: Collection[str], min_offset: Callable[[int], int]
    ) -> dict[int, int]:
        """The smallest offset of each queue among the groups of a topic; NO_CORRECTION where `compare_group` is less.

        Offsets before the queue's `min_offset` do not count, nor do groups left out.
        """
        smallest: dict[int, int] = {}
        for group in self.groups_of(topic):
            if group in left_out:
                continue
            for queue_id, offset in self._offsets[offset_key(topic, group)].items():
                if offset >= min_offset(queue_id) and offset < smallest.get(queue_id, NO_CORRECTION):
                    smallest[queue_id] = offset
        compared = self._offsets.get(offset_key(topic, compare_group), {})
        return {
            queue_id: NO_CORRECTION if queue_id in compared and compared[queue_id] < offset else offset
            for queue_id, offset in smallest.items()
        }

    # Copy and removal

    def clone(self, source: str, target: str, topics: Iterable[str] | None = None) -> None:
        """Let a group go on where another stands, for these topics or for all of it."""
        for topic in self.topics_of(source) if topics is None else topics:
            queues = self._offsets.get(offset_key(topic, source))
            if queues is not None:
                self._add(offset_key(topic, target)).update(queues)
                self.dirty = True

    def take_over(self, offsets: Mapping[str, Mapping[int, int]], version: DataVersion | None) -> None:
        """What a slave's master has; what only this table has stays."""
        for key, queues in offsets.items():
            known = self._offsets.get(key)
            if known != queues:
                (self._add(key) if known is None else known).update(queues)
                self.dirty = True
        if version is not None:
            self.data_version = version

    def take_larger(self, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """What another broker of the set has, where it is ahead."""
        for key, queues in offsets.items():
            known = self._offsets.get(key, {})
            ahead = {queue_id: offset for queue_id, offset in queues.items() if offset > known.get(queue_id, -1)}
            if ahead:
                (self._offsets.get(key) or self._add(key)).update(ahead)
                self.dirty = True

    def remove_topic(self, topic: str) -> None:
        """Forget the offsets of all groups of a topic."""
        self._remove(key for key in self._all_keys() if _parts(key)[0] == topic)

    def remove_group(self, group: str) -> None:
        """Forget the offsets of a group."""
        self._remove(key for key in self._all_keys() if _parts(key)[1] == group)

    def remove(self, group: str, topic: str) -> None:
        """Forget the offsets of a group of one topic."""
        self._remove([offset_key(topic, group)])

    def _all_keys(self) -> list[str]:
        return list({**self._offsets, **self._pulled, **self._resets})

    def _add(self, key: str) -> dict[int, int]:
        """An empty map of queues under a key, in place of the old one."""
        queues = self._offsets[key] = {}
        parts = split_offset_key(key)
        if parts is not None:
            topic, group = parts
            self._topics_of_group.setdefault(group, {})[topic] = None
        return queues

    def _remove(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._pulled.pop(key, None)
            self._resets.pop(key, None)
            if self._offsets.pop(key, None) is None:
                continue
            self.dirty = True
            topic, group = _parts(key)
            topics = self._topics_of_group.get(group, {})
            topics.pop(topic, None)
            if not topics:
                self._topics_of_group.pop(group, None)


def _parts(key: str) -> tuple[str, str]:
    """Topic and group; the group is all that follows the first separator, such as `GroupOne@broadcast`."""
    topic, _, group = key.partition("@")
    return topic, group
