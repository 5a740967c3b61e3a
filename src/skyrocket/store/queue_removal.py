"""Deletes queues on purpose: of a topic that is gone, or of records that are.

Records of a deleted queue may still be in the log; the manifest remembers it, so that recovery does not bring it back.
"""

from collections.abc import Container

from skyrocket.model.topic import LMQ_PREFIX, is_system_topic
from skyrocket.store.commit_log import CommitLog
from skyrocket.store.manifest import queue_key
from skyrocket.store.manifest_file import ManifestFile
from skyrocket.store.queue_table import QueueTable
from skyrocket.store.topic_queue import TopicQueue


class QueueRemoval:
    """Of one store; every method returns how many queues it deleted."""

    def __init__(self, commit_log: CommitLog, queues: QueueTable, manifest: ManifestFile) -> None:
        self._log = commit_log
        self._queues = queues
        self._manifest = manifest

    def remove_topic(self, topic: str) -> int:
        """Delete the queues of a topic; its records stay in the log until they expire."""
        return self._remove([queue for queue in self._queues if queue.topic == topic])

    def remove_unused(self, topics: Container[str]) -> int:
        """Delete queues whose topic is neither one of these nor the system's; light queues stay."""
        unused = (queue for queue in self._queues if queue.topic not in topics)
        doomed = (queue for queue in unused if not (is_system_topic(queue.topic) or queue.topic.startswith(LMQ_PREFIX)))
        return self._remove(list(doomed))

    def remove_expired(self) -> int:
        """Delete queues of ordinary topics whose records have all left the log."""
        oldest = self._log.min_offset
        expired = (queue for queue in self._queues if 0 <= queue.max_physical_offset <= oldest)
        doomed = (queue for queue in expired if queue.next_offset <= queue.max_offset)  # all records have their entries
        return self._remove([queue for queue in doomed if not is_system_topic(queue.topic)])

    def _remove(self, doomed: list[TopicQueue]) -> int:
        for queue in doomed:
            self._queues.removed[queue_key(queue)] = self._log.written_offset
            self._queues.remove(queue)
        if doomed:
            self._manifest.save(clean=False)
        return len(doomed)
