"""What one pull brought, kept as the bytes it came in until somebody wants messages or columns of it."""

from collections.abc import Callable, Collection
from struct import Struct

from skyrocket.client.core.lazy_message import LazyMessage
from skyrocket.client.core.message import ReceivedMessage, decode_messages
from skyrocket.errors import DataError
from skyrocket.format import sys_flag as flags
from skyrocket.format.record import MAGIC_V1, MAGIC_V2, SMALLEST_RECORD, some_fields
from skyrocket.model.message_queue import MessageQueue

_HEAD: Struct = some_fields("size", "magic", "queue_offset", "sys_flag")
_UNWRAPPED = flags.INNER_BATCH | flags.NEED_UNWRAP
_new = object.__new__


class PulledAnswer:
    """Records of one queue, in ascending offsets; `taken` of its messages were handed out already."""

    __slots__ = (
        "_decoded",
        "body",
        "broker_name",
        "delta",
        "end_offset",
        "has_batches",
        "max_offset",
        "min_offset",
        "offsets",
        "queue",
        "queue_id",
        "restore",
        "seen",
        "starts",
        "tags",
        "taken",
    )

    def __init__(
        self,
        body: bytes,
        queue: MessageQueue,
        min_offset: int,
        max_offset: int,
        end_offset: int,
        delta: int = 0,
        tags: Collection[str] = (),
        restore: Callable[[ReceivedMessage], None] | None = None,
    ) -> None:
        """Follows the records from one to the next; raises DataError where the bytes are not records."""
        self.body = body
        self.queue = queue
        self.broker_name, self.queue_id = queue.broker_name, queue.queue_id
        self.min_offset, self.max_offset = min_offset, max_offset
        self.end_offset = end_offset  # where the next pull goes on
        self.delta = delta  # between the offsets in records and those of the queue
        self.tags = tags  # brokers compare hashes of tags: what only has the same hash is dropped here
        self.restore = restore
        self.taken = 0
        self.seen: range | None = None  # offsets that were in hand already when this came
        self._decoded: list[ReceivedMessage] | None = None
        self.starts: list[int]
        self.offsets: list[int]
        self.has_batches: bool
        self._follow()

    def _follow(self) -> None:
        """From record to record; done for every message, so with local names and nothing but what is needed."""
        body, delta, unpack = self.body, self.delta, _HEAD.unpack_from
        starts: list[int] = []
        offsets: list[int] = []
        at, end, all_flags = 0, len(body), 0
        while at < end:
            if end - at < SMALLEST_RECORD:
                raise DataError(f"{end - at} bytes are left at byte {at} of a pull answer: too few for a record")
            size, magic, queue_offset, sys_flag = unpack(body, at)
            if size < SMALLEST_RECORD or size > end - at:
                raise DataError(f"a record of {size} bytes at byte {at} of a pull answer of {end} bytes")
            if magic != MAGIC_V1 and magic != MAGIC_V2:
                raise DataError(f"magic {magic & 0xFFFFFFFF:08X} at byte {at} of a pull answer is of no known record")
            starts.append(at)
            offsets.append(queue_offset + delta)
            all_flags |= sys_flag
            at += size
        self.starts, self.offsets = starts, offsets
        self.has_batches = all_flags & _UNWRAPPED == _UNWRAPPED  # or may have, where one has one flag, one the other

    def __len__(self) -> int:
        """Messages that were not handed out, those that will be dropped for their tags among them."""
        whole = len(self.messages()) if self.has_batches or self._decoded is not None else len(self.starts)
        return whole - self.taken

    @property
    def first_offset(self) -> int:
        """Of the first message that was not handed out."""
        if not self.taken:
            return self.offsets[0]
        left = self.messages()[self.taken :]
        return left[0].queue_offset if left else self.end_offset

    @property
    def is_plain(self) -> bool:
        """Whether its records are its messages, all of them, as they stand."""
        return not (self.has_batches or self.tags or self.taken or self.delta or self.seen is not None)

    def messages(self) -> list[ReceivedMessage]:
        """All that are wanted, also those that were handed out."""
        if self._decoded is None:
            self._decoded = self._wanted(self._unfolded() if self.has_batches else self._lazy())
        return self._decoded

    def take(self, most: int | None) -> list[ReceivedMessage]:
        """The next ones, up to a number of them."""
        messages = self.messages()
        if most is None and not self.taken:
            self.taken = len(messages)
            return messages
        found = messages[self.taken :] if most is None else messages[self.taken : self.taken + most]
        self.taken += len(found)
        return found

    def _lazy(self) -> list[ReceivedMessage]:
        found: list[ReceivedMessage] = []
        for at, offset in zip(self.starts, self.offsets, strict=True):
            message: LazyMessage = _new(LazyMessage)
            message._answer = self
            message._at = at
            message.queue_offset = offset
            found.append(message)
        return found

    def _unfolded(self) -> list[ReceivedMessage]:
        found = decode_messages(self.body, self.broker_name, self.queue_id)
        for message in found:
            message.min_offset, message.max_offset = self.min_offset, self.max_offset
            message.queue_offset += self.delta
        return found

    def _wanted(self, messages: list[ReceivedMessage]) -> list[ReceivedMessage]:
        if self.seen is not None:
            messages = [message for message in messages if message.queue_offset not in self.seen]
        if self.tags:
            messages = [message for message in messages if message.tags in self.tags]
        if self.restore is not None:
            for message in messages:
                self.restore(message)
        return messages
