"""What one connection has received and not begun.

    bytes ─▶ at_once: little, nothing before it, and the turn has room ─▶ all of it
      └────▶ unread ─▶ FrameReader ─▶ commands ─▶ take: a few, each time the connection's place in the ring comes

A peer that writes without waiting fills its own inbox and its own socket, nobody else's time: bytes that wait are not
even parsed before it is their time, and while any are left the socket is not read.
"""

from collections.abc import Callable
from time import perf_counter  # how long work takes, whatever clock the program was given
from typing import Final

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import FrameReader
from skyrocket.remoting.turn import Turn

# Bytes that are parsed at a time: about as many small requests as may be taken, or a good piece of a large one.
_PIECE_SIZE_EACH: Final = 512
_LARGE_PIECE_SIZE: Final = 64 << 10
_LARGE_FROM: Final = 4 << 10  # what waits for its end is large from this size on
_COSTLY_SECONDS: Final = 0.001  # sixteen sends take a third of it


class Inbox:
    """Of one connection."""

    __slots__ = (
        "_began",
        "_commands",
        "_is_costly",
        "_monotonic",
        "_reader",
        "_turn",
        "_turn_number",
        "_unread",
        "waiting_since",
    )

    def __init__(self, reader: FrameReader, turn: Turn, monotonic: Callable[[], float]) -> None:
        self.waiting_since: float | None = None  # since when there is always something left
        self._reader = reader
        self._turn = turn
        self._monotonic = monotonic
        self._turn_number = -1  # in which something was taken at once
        self._began = 0.0  # when something was last taken
        self._is_costly = False  # whether that took long: then the next waits for its time, however little it is
        self._commands: list[RemotingCommand] = []
        self._unread: bytes | memoryview = b""

    @property
    def has_left(self) -> bool:
        """Whether something waits to be taken."""
        return bool(self._commands or self._unread)

    @property
    def unread_size(self) -> int:
        """Bytes that wait to be parsed."""
        return len(self._unread)

    def at_once(self, data: bytes) -> list[RemotingCommand] | None:
        """Bytes came: their commands, when there are no more than any peer may bring in any turn and nothing waits.

        None: they wait, to be taken. This is how nearly everything comes, and it must cost next to nothing.
        Raises ProtocolError.
        """
        if self._commands or self._unread:
            self._put(data)
            return None
        turn = self._turn
        limits = turn.limits
        if limits is None:
            return self._reader.receive(data)
        now, size = perf_counter(), len(data)
        if not turn.until:
            turn.begin(limits, now)
        if turn.ring:
            most_bytes, most, is_late = limits.read_size_at_once, limits.requests_at_once, self._is_costly
        else:  # a single producer with many sends in flight is nobody's trouble
            most_bytes, most, is_late = limits.read_size_alone, limits.requests_alone, False
        if (
            is_late
            or now > turn.until
            or size >= most_bytes
            or turn.read_size_left < size
            or (turn.number == self._turn_number and not turn.looks_again)
        ):
            self._put(data)
            return None
        turn.read_size_left -= size
        self._turn_number = turn.number
        self._began = now
        commands = self._reader.receive(data)
        if len(commands) <= most:
            return commands
        self._commands = commands
        return None

    def _put(self, data: bytes) -> None:
        self._unread = bytes(self._unread) + data if self._unread else data

    def take(self, most: int) -> list[RemotingCommand]:
        """The next commands; none when a piece of the unread bytes completes none. Raises ProtocolError."""
        self._began = perf_counter()
        commands = self._commands
        if not commands:
            if not self._unread:
                return commands
            commands = self._parse(most)
        self._commands = commands[most:]
        return commands[:most] if self._commands else commands

    def handled(self) -> None:
        """What was taken has been handled, or left."""
        self._is_costly = perf_counter() - self._began > _COSTLY_SECONDS

    def _parse(self, most: int) -> list[RemotingCommand]:
        unread = self._unread
        size = _LARGE_PIECE_SIZE if len(self._reader.pending) >= _LARGE_FROM else _PIECE_SIZE_EACH * max(most, 16)
        if len(unread) <= size:
            piece, self._unread = unread, b""
        else:
            rest = memoryview(unread)
            piece, self._unread = rest[:size], rest[size:]
        self._turn.read_size_left -= len(piece)
        return self._reader.receive(piece)

    def begins_to_wait(self) -> bool:
        """Whether something waits for room from now on; what only waits for its time does not count."""
        if self.waiting_since is not None or not self.has_left:
            return False
        self.waiting_since = self._monotonic()
        return True

    def put_back(self, commands: list[RemotingCommand]) -> None:
        """These could not be begun."""
        self._commands = commands + self._commands

    def take_waiting(self) -> tuple[list[RemotingCommand], int]:
        """All commands that wait, and for how many milliseconds they do."""
        commands, self._commands = self._commands, []
        return commands, self.waited_ms

    @property
    def waited_ms(self) -> int:
        """How long something has been left without a pause."""
        return 0 if self.waiting_since is None else int((self._monotonic() - self.waiting_since) * 1000)

    def clear(self) -> None:
        """Nothing of it is wanted any more."""
        self._commands, self._unread = [], b""
