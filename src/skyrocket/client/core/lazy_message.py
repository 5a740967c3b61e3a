"""Messages of a bulk poll: made of two references and an offset, and read from their record when a field is looked at.

Whoever polls thousands of messages mostly wants their bodies. So a body is cut out by itself, and all else is read at
once when anything else is asked for. Until then a message keeps the bytes of the whole answer it came with.
"""

from struct import Struct
from typing import TYPE_CHECKING, Any, Protocol

from skyrocket.client.core.message import ReceivedMessage, decode_messages
from skyrocket.format import sys_flag as flags
from skyrocket.format.record import FIELD_CODES, HEADS, HOST_BITS_MASK, HOST_BITS_SHIFT, SYS_FLAG_AT, field_offset

_NOT_AS_IT_STANDS = flags.COMPRESSED | HOST_BITS_MASK << HOST_BITS_SHIFT
_BODY_AT = HEADS[0].size
_BETWEEN = field_offset("body_length") - SYS_FLAG_AT - Struct(FIELD_CODES["sys_flag"]).size
_SIZE = Struct(">i").unpack_from
_FLAG_AND_LENGTH = Struct(f">i{_BETWEEN}xi").unpack_from
# The offset is the queue's, not the record's.
_READ = tuple(name for name in ReceivedMessage.__slots__ if name != "queue_offset")


class Answer(Protocol):
    """Where a message comes from: bytes of records, and what was said about all of them."""

    body: bytes
    broker_name: str
    queue_id: int
    min_offset: int
    max_offset: int


class LazyMessage(ReceivedMessage):
    """A message that is read when it is looked at; for everybody else a ReceivedMessage."""

    __slots__ = ("_answer", "_at")

    _answer: Answer
    _at: int

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """A field that nobody has looked at yet."""
            if name not in _READ:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self._read()
            return getattr(self, name)

    @property
    def body(self) -> bytes:
        """As the producer gave it; raises DataError when it was compressed and cannot be inflated."""
        data, at = self._answer.body, self._at
        sys_flag, length = _FLAG_AND_LENGTH(data, at + SYS_FLAG_AT)
        if sys_flag & _NOT_AS_IT_STANDS:
            return ReceivedMessage.body.__get__(self)  # type: ignore[no-any-return]
        return data[at + _BODY_AT : at + _BODY_AT + length]

    def consumption_begins(self, now_ms: int) -> None:
        """Its handler is about to be called."""
        self._read()
        super().consumption_begins(now_ms)

    def _read(self) -> None:
        answer = self._answer
        end = self._at + _SIZE(answer.body, self._at)[0]
        (whole,) = decode_messages(answer.body[self._at : end], answer.broker_name, answer.queue_id)
        whole.min_offset, whole.max_offset = answer.min_offset, answer.max_offset
        for name in _READ:
            setattr(self, name, getattr(whole, name))
