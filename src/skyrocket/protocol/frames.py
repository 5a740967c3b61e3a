"""Bytes in → commands out, command in → bytes out.

    4 length of all that follows   1 form of the header   3 length of the header   header   body

`FrameReader.receive` gives the same commands however the bytes are cut. It holds at most one incomplete frame, which
grows with what has really come, so a peer that only announces much costs nothing.
"""

from collections.abc import Sequence
from struct import Struct

from skyrocket.protocol import header_binary, header_json
from skyrocket.protocol.codes import SerializeType
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.errors import CommandTooLarge, ProtocolError

MAX_FRAME_SIZE = 16 << 20  # the length field included

_PREFIX = Struct(">iI")
_PREFIX_SIZE = _PREFIX.size
_LENGTH_SIZE = 4
_MAX_HEADER_SIZE = (1 << 24) - 1
_VIEW_FROM = 32 << 10  # bodies from this size on are views of what was received, smaller ones are cheaper to copy


class FrameReader:
    """Cuts what one connection receives into commands."""

    __slots__ = ("_failed", "_max_frame_size", "_pending")

    def __init__(self, max_frame_size: int = MAX_FRAME_SIZE) -> None:
        self._max_frame_size = max_frame_size
        self._pending = bytearray()  # the beginning of one frame
        self._failed: str | None = None

    @property
    def pending_size(self) -> int:
        """Bytes held of a frame that is not complete."""
        return len(self._pending)

    def receive(self, data: bytes | bytearray | memoryview) -> list[RemotingCommand]:
        """All commands that are now complete; raises ProtocolError, after which the connection must be closed."""
        if self._failed is not None:
            raise ProtocolError(self._failed)
        if data.__class__ is not bytes:
            data = bytes(data)
        commands: list[RemotingCommand] = []
        try:
            self._cut(data, self._complete_pending(data, commands) if self._pending else 0, commands)
        except ProtocolError as error:
            self._failed = error.reason
            self._pending = bytearray()
            error.commands = commands
            raise
        return commands

    def _cut(self, data: Body, at: int, commands: list[RemotingCommand]) -> None:
        size = len(data)
        while size - at >= _PREFIX_SIZE:
            length, word = _PREFIX.unpack_from(data, at)
            header_size = word & _MAX_HEADER_SIZE
            self._check(length, word, header_size)
            frame_size = length + _LENGTH_SIZE
            if size - at < frame_size:
                break
            body_at = at + _PREFIX_SIZE + header_size
            at, header_at = at + frame_size, at + _PREFIX_SIZE
            body: Body = data[body_at:at] if at - body_at < _VIEW_FROM else memoryview(data)[body_at:at]
            if word > _MAX_HEADER_SIZE:
                commands.append(header_binary.decode(bytes(data[header_at:body_at]), body))
            elif header_size:
                commands.append(header_json.decode(bytes(data[header_at:body_at]), body))
            # RocketMQ: a frame without a header is passed over in silence.
        else:
            if size - at >= _LENGTH_SIZE:
                length = int.from_bytes(data[at : at + _LENGTH_SIZE], "big", signed=True)
                self._check(length, 0, 0)
        if at < size:
            self._pending += data[at:]

    def _complete_pending(self, data: bytes, commands: list[RemotingCommand]) -> int:
        """Add to the pending frame what is missing, and no more; returns how much of the data was used."""
        pending = self._pending
        used = min(max(_PREFIX_SIZE - len(pending), 0), len(data))
        pending += data[:used]
        if len(pending) >= _PREFIX_SIZE:
            length, word = _PREFIX.unpack_from(pending)
            self._check(length, word, word & _MAX_HEADER_SIZE)
            missing: int = min(length + _LENGTH_SIZE - len(pending), len(data) - used)
            pending += memoryview(data)[used : used + missing]
            used += missing
            if len(pending) < length + _LENGTH_SIZE:
                return used
        self._pending = bytearray()
        # A large frame is handed over, not copied: nothing writes to these bytes any more.
        self._cut(bytes(pending) if len(pending) < _VIEW_FROM else memoryview(pending), 0, commands)
        return used

    def _check(self, length: int, word: int, header_size: int) -> None:
        if not 4 + header_size <= length <= self._max_frame_size - _LENGTH_SIZE:
            raise ProtocolError(
                f"a frame of {length} bytes with a header of {header_size}; the limit is {self._max_frame_size}"
            )
        if word > _MAX_HEADER_SIZE and word >> 24 != SerializeType.ROCKETMQ:
            raise ProtocolError(f"header form {word >> 24} is unknown")


def encode(command: RemotingCommand) -> bytes:
    """The whole frame."""
    body = command.body
    head = encode_head(command, len(body))
    return b"".join((head, body)) if body else head


def encode_parts(command: RemotingCommand, body: Sequence[Body]) -> list[Body]:
    """The frame in pieces, for a body that should not be copied once more; the command's own body is not looked at."""
    return [encode_head(command, sum(map(len, body))), *body]


def encode_head(command: RemotingCommand, body_size: int) -> bytes:
    """Lengths and header of a frame whose body follows; raises CommandTooLarge."""
    if command.serialize_type is SerializeType.JSON or not header_binary.can_carry(command):
        form, header = 0, header_json.encode(command)
    else:
        form, header = 1 << 24, header_binary.encode(command)
    header_size = len(header)
    length = 4 + header_size + body_size
    if header_size > _MAX_HEADER_SIZE or length > MAX_FRAME_SIZE - _LENGTH_SIZE:
        raise CommandTooLarge(f"header {header_size} bytes, body {body_size} bytes; a frame has {MAX_FRAME_SIZE}")
    return _PREFIX.pack(length, form | header_size) + header
