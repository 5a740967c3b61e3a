"""The manifest: which queues and index files the store had, so that a deleted one is missed and rebuilt.

RocketMQ knows a queue only by its directory; when that is gone it starts to count from 0 again. The manifest is
written at a clean close and whenever the set of queues has changed, after the queues themselves are on disk. It
is a lower bound: a queue may have grown since, but not shrunk (but for retention, which moves its start). It also
remembers queues that were deleted while their records were still in the log: recovery must not bring them back.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from skyrocket.format.crc import checked_text, with_checksum
from skyrocket.store.disk import Disk
from skyrocket.store.topic_queue import TopicQueue


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was on disk when it was written."""

    log_end: int = -1
    clean: bool = False  # written by a clean close, behind which the log has not grown
    queues: dict[str, list[int]] = field(default_factory=dict)  # "topic/queue id" → first byte of its files, max offset
    index_files: list[str] = field(default_factory=list)
    removed: dict[str, int] = field(default_factory=dict)  # deleted queues → where the log ended then
    seal: int | None = None  # of a clean close: `store.seal`
    last_timestamp: int = 0  # store time of the newest record then

    def missing_queues(self, queues: Iterable[TopicQueue]) -> list[str]:
        """Queues that are gone or shorter than they were."""
        found = {queue_key(queue): queue for queue in queues}
        missing = []
        for key, (first_byte, max_offset) in self.queues.items():
            queue = found.get(key)
            if max_offset and (queue is None or queue.max_offset < max_offset or queue.entries.first_byte > first_byte):
                missing.append(key)
        return missing

    def missing_index_files(self, names: Iterable[str]) -> list[str]:
        return sorted(set(self.index_files) - set(names))


def queue_key(queue: TopicQueue) -> str:
    """The name of a queue in the manifest."""
    return f"{queue.topic}/{queue.queue_id}"


def save_manifest(disk: Disk, path: str, manifest: Manifest) -> None:
    content = {
        "logEnd": manifest.log_end,
        "clean": manifest.clean,
        "queues": manifest.queues,
        "indexFiles": manifest.index_files,
        "removed": manifest.removed,
        "seal": manifest.seal,
        "lastTimestamp": manifest.last_timestamp,
    }
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    disk.replace_file(path, with_checksum(text))


def load_manifest(disk: Disk, path: str) -> Manifest | None:
    """The manifest; None when there is none or it is damaged (then nothing is known, as with RocketMQ)."""
    try:
        text = checked_text(disk.read_file(path))
    except FileNotFoundError:
        return None
    if text is None:
        return None
    content = json.loads(text)
    return Manifest(
        content["logEnd"],
        content["clean"],
        content["queues"],
        content["indexFiles"],
        content.get("removed", {}),
        content.get("seal"),
        content.get("lastTimestamp", 0),
    )
