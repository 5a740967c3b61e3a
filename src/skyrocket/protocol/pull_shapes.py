"""Headers of pulls that differ only in both offsets and opaque number are read without a JSON parser.

    {"code":11,"extFields":{…,"commitOffset":"|0|",…,"queueOffset":"|64|",…},…,"opaque":|4|,…,"version":493}
    └────────────── head ───────────────────┘   └─── middle ──────────┘    └─── rest ─────┘ └───── end ────┘

As `send_shapes`: a consumer asks for each of its queues in the same words again and again. The first is read in full
and its shape remembered, by each connection for itself, as long as all of them together have room for it. Whoever wants
the ext fields of such a request still gets them.
"""

from typing import Final

import orjson

from skyrocket.protocol.codes import LanguageCode, RequestCode, SerializeType
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.header_json import decode
from skyrocket.protocol.send_shapes import Room, ShapeMemo

PULL_HEADS: Final = (b'{"code":11,"extFields":{', b'{"code":361,"extFields":{')

_PULL_CODES: Final = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
_COMMITTED: Final = b'"commitOffset":"'
_OFFSET: Final = b'"queueOffset":"'
_NUMBER: Final = b'"opaque":'
_ONCE: Final = (b'"commitOffset"', b'"queueOffset"', b'"opaque"')  # a name that stands twice has its last value
_NEVER: Final = (b"\\", b"Signature")  # a quote might be part of a text; and a signature is new each time
_OFFSET_DIGITS: Final = 18  # so many always fit into 64 bits
_MAX_SHAPES: Final = 2_000
_MAX_SIZE: Final = 2_048
_KEPT_SIZE: Final = 1_536  # that a shape takes beside its words, about; what is read ahead has a bound of its own

_new = object.__new__


class PullShape:
    """What pulls of one shape have in common."""

    __slots__ = ("code", "flag", "language", "memo", "version")

    def __init__(self, example: RemotingCommand) -> None:
        self.code = example.code
        self.flag = example.flag
        self.language: LanguageCode | None = example.language
        self.version = example.version
        self.memo: ShapeMemo | None = None


class ShapedPull(RemotingCommand):
    """A PULL_MESSAGE or LITE_PULL_MESSAGE whose header had a known shape."""

    __slots__ = ("commit_offset", "header", "queue_offset", "shape")

    remark = None
    serialize_type = SerializeType.JSON

    commit_offset: int
    header: bytes
    queue_offset: int
    shape: PullShape

    @property
    def ext_fields(self) -> dict[str, str] | None:  # type: ignore[override]
        return decode(self.header, self.body).ext_fields


class PullShapes:
    """The shapes that one connection has seen."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._taken = 0
        self._by_text: dict[tuple[bytes, bytes, bytes, bytes], PullShape] = {}

    def __len__(self) -> int:
        return len(self._by_text)

    def command(self, header: bytes, body: Body) -> RemotingCommand:
        """The request of a header that begins like a pull; raises ProtocolError as a full parse does."""
        head, _, tail = header.partition(_COMMITTED)
        committed, _, tail = tail.partition(b'"')
        middle, _, tail = tail.partition(_OFFSET)
        offset, _, tail = tail.partition(b'"')
        rest, _, tail = tail.partition(_NUMBER)
        digits, _, end = tail.partition(b",")
        shape = self._by_text.get((head, middle, rest, end))
        if shape is None:
            command = decode(header, body)
            if self._room.left > 0 and _has_shape(header, command, committed, offset, digits):
                if len(self._by_text) >= _MAX_SHAPES:
                    self.forget()
                self._take(len(header) + _KEPT_SIZE)
                self._by_text[head, middle, rest, end] = PullShape(command)
            return command
        if not _are_numbers(committed, offset, digits):
            return decode(header, body)
        pull = _new(ShapedPull)  # as in header_json.decode
        pull.code = shape.code
        pull.opaque = int(digits)
        pull.flag = shape.flag
        pull.body = body
        pull.language = shape.language
        pull.version = shape.version
        pull.commit_offset = int(committed)
        pull.header = header
        pull.queue_offset = int(offset)
        pull.shape = shape
        return pull

    def forget(self) -> None:
        """Give all room back to the others."""
        self._by_text.clear()
        self._take(-self._taken)

    def _take(self, size: int) -> None:
        self._taken += size
        self._room.left -= size


def _are_numbers(committed: bytes, offset: bytes, digits: bytes) -> bool:
    """Whether both offsets are plain numbers of 64 bits, and JSON has the third one, in 31 bits."""
    size = len(digits)
    return (
        committed.isdigit()
        and offset.isdigit()
        and digits.isdigit()
        and len(committed) <= _OFFSET_DIGITS
        and len(offset) <= _OFFSET_DIGITS
        and (size < 10 or (size == 10 and digits <= b"2147483647"))
        and (size == 1 or digits[0] != 48)
    )


def _has_shape(header: bytes, command: RemotingCommand, committed: bytes, offset: bytes, digits: bytes) -> bool:
    """Whether others of these words, with other digits at these three places, differ in nothing but these values."""
    if (
        len(header) > _MAX_SIZE
        or command.code not in _PULL_CODES
        or command.remark is not None
        or any(header.count(name) != 1 for name in _ONCE)
        or any(sign in header for sign in _NEVER)
        or not _are_numbers(committed, offset, digits)
    ):
        return False
    try:
        fields = orjson.loads(header)  # strictly: in what else passes, a quote need not begin or end a text
    except orjson.JSONDecodeError:
        return False
    ext_fields = fields["extFields"]
    if not isinstance(ext_fields, dict):  # the name stands again, with something else behind it
        return False
    found = (ext_fields.get("commitOffset"), ext_fields.get("queueOffset"), fields.get("opaque"))
    return found == (committed.decode(), offset.decode(), int(digits))
