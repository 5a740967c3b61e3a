"""What every queue of a topic has in common: its identity, its counters and its files."""

import numpy as np

from skyrocket.format.java_hash import unsigned_hash
from skyrocket.format.record import topic_part
from skyrocket.model.topic import SCHEDULE_TOPIC
from skyrocket.store.entry_files import EntryFiles
from skyrocket.store.numbering import Doubts


class TopicQueue:
    """One (topic, queue id): the next offset to assign, and the entries that dispatch has built."""

    __slots__ = (
        "confirmed_offset",
        "damaged",
        "doubts",
        "entries",
        "has_gap",
        "holds_delivery_times",
        "index_prefixes",
        "max_offset",
        "max_physical_offset",
        "mended",
        "min_offset",
        "next_offset",
        "queue_id",
        "record_magic",
        "topic",
        "topic_part",
    )

    # What the dispatcher may append itself, without a call: entries of 20 bytes numbered from 0.
    simple = False

    def __init__(self, topic: str, queue_id: int, entries: EntryFiles) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.entries = entries
        self.record_magic, self.topic_part = topic_part(topic.encode())
        # Hashes of what stands before a key and before tags in the index, side by side in eight bytes.
        prefixes = [unsigned_hash(topic + "#"), unsigned_hash(topic + "#T#")]
        self.index_prefixes = int(np.array(prefixes, dtype=np.uint32).view(np.uint64)[0])
        self.holds_delivery_times = topic == SCHEDULE_TOPIC
        self.next_offset = 0  # what the next message gets; the writer's
        self.max_offset = 0  # entries end here; the dispatcher's
        self.min_offset = 0
        self.max_physical_offset = -1  # end of the last record that has an entry
        self.confirmed_offset = -1  # recovery has seen the records of all entries before it
        self.damaged = False  # its files cannot be right: rebuild it from the log
        self.has_gap = False  # a record came whose predecessor has no entry
        self.mended = 0  # entries that recovery found to be wrong
        self.doubts: Doubts | None = None  # records whose number does not fit; only while recovery runs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.topic!r}, {self.queue_id}, {self.min_offset}…{self.max_offset})"

    def reset(self) -> None:
        """Forget and delete all entries, to build them anew."""
        self.entries.destroy()
        self.next_offset = self.max_offset = self.min_offset = 0
        self.max_physical_offset = -1
        self.confirmed_offset = -1
        self.damaged = self.has_gap = False
        self.mended = 0

    # What each kind of queue must be able to do, for dispatch, recovery and retention.

    def append(
        self, physical_offset: int, size: int, tags_code: int, queue_offset: int, timestamp: int, messages: int
    ) -> None:
        """Add the entry of a record; one that is there already is compared and mended."""
        raise NotImplementedError

    def recover(self) -> None:
        """Find the end of the entries on disk."""
        raise NotImplementedError

    def truncate_to(self, log_end: int) -> None:
        """Drop entries of records that the log no longer has at its end."""
        raise NotImplementedError

    def settle_doubts(self) -> None:
        """Give the records that are still in doubt the most likely numbers; the walk is over."""

    def first_unconfirmed(self, walked_from: int) -> int | None:
        """The first of the entries at the queue's end whose records a walk should have met, but did not; or None.

        RocketMQ leaves such entries behind a cut; later records may then lie where theirs were.
        """
        return None

    def entry_place(self, queue_offset: int) -> tuple[int, int]:
        """Physical offset and size of the record that an entry means."""
        raise NotImplementedError

    def drop_from(self, queue_offset: int) -> None:
        """Drop the entries from a number on."""
        raise NotImplementedError

    def correct_min_offset(self, log_start: int) -> None:
        """Move the first readable offset behind records that the log no longer has at its start."""
        raise NotImplementedError

    def last_physical_offset(self, file_start: int) -> int:
        """Where the record of the last entry of a file begins; -1 when the file has none."""
        raise NotImplementedError
