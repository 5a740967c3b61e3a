"""What one connection has received and not begun, and how much of a turn it may take.

    bytes ─▶ unread ─▶ FrameReader ─▶ commands ─▶ take: a slice, as long as the connection's share of the turn lasts
      └────▶ at_once: little, and nothing before it ─▶ all of it

A peer that writes without waiting fills its own inbox and its own socket, nobody else's time: bytes beyond the share
are not even parsed in this turn, and while any are left the socket is not read.
"""

import sys
from collections.abc import Callable
from typing import Final

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import FrameReader
from skyrocket.remoting.answers import Turn

_PIECE_SIZE: Final = 64 << 10  # bytes that are parsed before the clock is looked at


class Inbox:
    """Of one connection."""

    __slots__ = (
        "_began",
        "_commands",
        "_monotonic",
        "_reader",
        "_requests_left",
        "_turn",
        "_turn_number",
        "_unread",
        "read_size_left",
        "waiting_since",
    )

    def __init__(self, reader: FrameReader, turn: Turn, monotonic: Callable[[], float]) -> None:
        self.read_size_left = 0 if turn.limits is not None else sys.maxsize  # of the shares so far
        self.waiting_since: float | None = None  # since when there is always something left
        self._reader = reader
        self._turn = turn
        self._monotonic = monotonic
        self._turn_number = -1  # in which the share was given
        self._requests_left = sys.maxsize
        self._began = False  # whether anything was taken in this turn
        self._commands: list[RemotingCommand] = []
        self._unread: bytes | memoryview = b""

    @property
    def has_left(self) -> bool:
        """Whether something waits to be taken."""
        return bool(self._commands or self._unread)

    def at_once(self, data: bytes) -> list[RemotingCommand] | None:
        """Bytes came: their commands, when there are no more than any peer may bring in any turn and nothing waits.

        None: they were put, to be taken. This is how nearly everything comes, and no share need be worked out for it.
        Raises ProtocolError.
        """
        turn, size = self._turn, len(data)
        limits = turn.limits
        if self._commands or self._unread or size >= _PIECE_SIZE:
            self.put(data)
            return None
        if limits is None:
            return self._reader.receive(data)
        if self.read_size_left < 0 or turn.number == self._turn_number or size >= limits.read_size_each_at_least:
            self.put(data)
            return None
        commands = self._reader.receive(data)
        requests_left = limits.requests_each_at_least - len(commands)
        if requests_left < 0:
            self.new_turn()
            self.read_size_left -= size
            self._commands = commands
            return None
        if not turn.until:
            turn.begin(limits)
        self._turn_number = turn.number
        self._began = True
        self._requests_left = requests_left
        self.read_size_left = limits.read_size_each_at_least - size
        self.waiting_since = None
        return commands

    def put(self, data: bytes) -> None:
        """Bytes came, to be taken by and by."""
        self.new_turn()
        self.read_size_left -= len(data)
        self._unread = bytes(self._unread) + data if self._unread else data

    def new_turn(self) -> None:
        """Know the share of the turn that has begun, if one has."""
        turn = self._turn
        if turn.number != self._turn_number and turn.limits is not None:
            self._turn_number = turn.number
            self._began = False
            self._requests_left, share = turn.shares(turn.limits)
            # Loops read in chunks of their own size: who read too much waits until it is made up for.
            self.read_size_left = min(share, self.read_size_left + share)

    def take(self) -> list[RemotingCommand]:
        """The next commands; none when there are none, or when others come first. Raises ProtocolError."""
        while not self._commands:
            if not self._unread:
                self.waiting_since = None
                return []
            if self._must_wait():
                return []
            self._parse()
        if self._must_wait():
            return []
        commands = self._commands
        size = min(len(commands), self._turn.slice_size, self._requests_left)
        self._requests_left -= size
        self._began = True
        self._commands = commands[size:]
        return commands if size == len(commands) else commands[:size]

    def _must_wait(self) -> bool:
        return self._requests_left <= 0 or (self._began and self._turn.is_long)

    def begins_to_wait(self) -> bool:
        """Whether something waits for room from now on; what only waits for its share does not count."""
        if self.waiting_since is not None or not self.has_left:
            return False
        self.waiting_since = self._monotonic()
        return True

    def _parse(self) -> None:
        unread = self._unread
        if len(unread) <= _PIECE_SIZE:
            piece, self._unread = unread, b""
        else:
            rest = memoryview(unread)
            piece, self._unread = bytes(rest[:_PIECE_SIZE]), rest[_PIECE_SIZE:]
        self._commands = self._reader.receive(piece)

    def put_back(self, commands: list[RemotingCommand]) -> None:
        """These could not be begun."""
        self._commands = commands + self._commands

    def take_waiting(self) -> tuple[list[RemotingCommand], int]:
        """All commands that wait, whatever the share, and for how many milliseconds they do."""
        commands, self._commands = self._commands, []
        return commands, self.waited_ms

    @property
    def waited_ms(self) -> int:
        """How long something has been left without a pause."""
        return 0 if self.waiting_since is None else int((self._monotonic() - self.waiting_since) * 1000)

    def clear(self) -> None:
        """Nothing of it is wanted any more."""
        self._commands, self._unread = [], b""
