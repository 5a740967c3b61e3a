"""Bytes in → commands out, command in → bytes out.

    4 length of all that follows   1 form of the header   3 length of the header   header   body

`FrameReader.receive` gives the same commands however the bytes are cut. It holds at most one incomplete frame, which
grows with what has really come, so a peer that only announces much costs nothing.
"""

from struct import Struct

from skyrocket.protocol import header_binary, header_json
from skyrocket.protocol.codes import SerializeType
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.errors import CommandTooLarge, ProtocolError
from skyrocket.protocol.pull_shapes import PULL_HEADS, PullShapes
from skyrocket.protocol.send_shapes import SEND_CODES, SEND_HEADS, SendShapes

MAX_FRAME_SIZE = 16 << 20  # the length field included

_PREFIX = Struct(">iI")
_PREFIX_SIZE = _PREFIX.size
_unpack_prefix = _PREFIX.unpack_from
_decode_json = header_json.decode
_LENGTH_SIZE = 4
_MAX_HEADER_SIZE = (1 << 24) - 1
_VIEW_FROM = 32 << 10  # bodies from this size on are views of what was received, smaller ones are cheaper to copy


class FrameReader:
    """Cuts what one connection receives into commands."""

    __slots__ = ("_failed", "_max_frame_size", "_pulls", "_shapes", "frames_received", "pending")

    def __init__(self, max_frame_size: int = MAX_FRAME_SIZE, shapes: SendShapes | None = None) -> None:
        self._max_frame_size = max_frame_size
        self._shapes = shapes  # for servers that many sends come to
        self._pulls = None if shapes is None else PullShapes(shapes.pull_room)  # and many pulls
        self.frames_received = 0
        self.pending = bytearray()  # the beginning of one frame; others only look how much there is
        self._failed: str | None = None

    def receive(self, data: bytes | bytearray | memoryview) -> list[RemotingCommand]:
        """All commands that are now complete; raises ProtocolError, after which the connection must be closed."""
        if self._failed is not None:
            raise ProtocolError(self._failed)
        if data.__class__ is not bytes:
            data = bytes(data)
        commands: list[RemotingCommand] = []
        try:
            self._cut(data, self._complete_pending(data, commands) if self.pending else 0, commands)
        except ProtocolError as error:
            self._failed = error.reason
            self.pending = bytearray()
            self.frames_received += len(commands)
            error.commands = commands
            raise
        self.frames_received += len(commands)
        return commands

    def forget(self) -> None:
        """Nothing more will come: give back what was remembered of this connection alone."""
        if self._pulls is not None:
            self._pulls.forget()

    def _cut(self, data: bytes, at: int, commands: list[RemotingCommand]) -> None:
        size = len(data)
        largest = self._max_frame_size - _LENGTH_SIZE
        shapes, pulls = self._shapes, self._pulls
        while size - at >= _PREFIX_SIZE:
            length, word = _unpack_prefix(data, at)
            header_size = word & _MAX_HEADER_SIZE
            if word > _MAX_HEADER_SIZE or not 4 + header_size <= length <= largest:
                self._check(length, word)
            end = at + _LENGTH_SIZE + length
            if end > size:
                break
            header_at = at + _PREFIX_SIZE
            body_at = header_at + header_size
            body: Body = data[body_at:end] if end - body_at < _VIEW_FROM else memoryview(data)[body_at:end]
            if word <= _MAX_HEADER_SIZE and header_size:
                header = data[header_at:body_at]
                if shapes is not None and header.startswith(SEND_HEADS):
                    commands.append(shapes.read(header, body) or _learned(shapes, header, body))
                elif pulls is not None and header.startswith(PULL_HEADS):
                    commands.append(pulls.command(header, body))
                else:
                    commands.append(_decode_json(header, body))
            else:
                self._decode(word, data[header_at:body_at], body, commands)
            at = end
        else:
            if size - at >= _LENGTH_SIZE:
                self._check(int.from_bytes(data[at : at + _LENGTH_SIZE], "big", signed=True), 0)
        if at < size:
            self.pending += data[at:]

    def _complete_pending(self, data: bytes, commands: list[RemotingCommand]) -> int:
        """Add to the pending frame what is missing, and no more; returns how much of the data was used."""
        pending = self.pending
        used = min(max(_PREFIX_SIZE - len(pending), 0), len(data))
        pending += data[:used]
        if len(pending) < _PREFIX_SIZE:
            if len(pending) >= _LENGTH_SIZE:
                self._check(int.from_bytes(pending[:_LENGTH_SIZE], "big", signed=True), 0)
            return used
        length, word = _unpack_prefix(pending)
        self._check(length, word)
        missing: int = min(length + _LENGTH_SIZE - len(pending), len(data) - used)
        pending += memoryview(data)[used : used + missing]
        if len(pending) == length + _LENGTH_SIZE:
            # The frame is handed over, not copied: nothing writes to these bytes any more.
            self.pending = bytearray()
            frame = memoryview(pending)
            body_at = _PREFIX_SIZE + (word & _MAX_HEADER_SIZE)
            body = frame[body_at:]
            header = bytes(frame[_PREFIX_SIZE:body_at])
            self._decode(word, header, body if len(body) >= _VIEW_FROM else bytes(body), commands)
        return used + missing

    def _decode(self, word: int, header: bytes, body: Body, commands: list[RemotingCommand]) -> None:
        """Any frame, also one that came in pieces, as those of a client that sends much without waiting do."""
        if word > _MAX_HEADER_SIZE:
            commands.append(header_binary.decode(header, body))
        elif self._shapes is not None and header.startswith(SEND_HEADS):
            commands.append(self._shapes.read(header, body) or _learned(self._shapes, header, body))
        elif self._pulls is not None and header.startswith(PULL_HEADS):
            commands.append(self._pulls.command(header, body))
        elif header:
            commands.append(_decode_json(header, body))
        # RocketMQ: a frame without a header is passed over in silence.

    def _check(self, length: int, word: int) -> None:
        header_size = word & _MAX_HEADER_SIZE
        if not 4 + header_size <= length <= self._max_frame_size - _LENGTH_SIZE:
            raise ProtocolError(
                f"a frame of {length} bytes with a header of {header_size}; the limit is {self._max_frame_size}"
            )
        if word > _MAX_HEADER_SIZE and word >> 24 != SerializeType.ROCKETMQ:
            raise ProtocolError(f"header form {word >> 24} is unknown")


def _learned(shapes: SendShapes, header: bytes, body: Body) -> RemotingCommand:
    """A send whose shape was not known."""
    command = _decode_json(header, body)
    if command.code in SEND_CODES:
        shapes.learn(header, command)
    return command


def encode(command: RemotingCommand) -> bytes:
    """The whole frame."""
    body = command.body
    head = encode_head(command, len(body))
    return b"".join((head, body)) if body else head


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
