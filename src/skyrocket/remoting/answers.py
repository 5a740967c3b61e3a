"""What a handler may return — an answer, an answer that comes later, or none — and the turn with which answers leave.

    return request.answer(SUCCESS)          an immediate answer; bytes or pieces of an encoded frame will do as well
    return LaterAnswer(request)             keep it and `fill` it: at the turn's end, from a timer, from a callback
    return some_coroutine(...)              for the few that must wait; the router makes a task and fills a LaterAnswer
    return None                             never answered

Answers that are filled before the turn ends leave with the turn's single write and in the order of the requests. What
is filled after that leaves with the turn in which it is filled.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import perf_counter  # how long work takes, whatever clock the program was given
from typing import Protocol, TypeAlias

from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import RESPONSE_FLAG, Body, RemotingCommand
from skyrocket.protocol.errors import CommandTooLarge, RequestError
from skyrocket.protocol.frames import encode, encode_head
from skyrocket.remoting.limits import TurnLimits

_logger = logging.getLogger(__name__)

Frame: TypeAlias = bytes | list[Body]  # an encoded command, whole or in pieces
Answer: TypeAlias = RemotingCommand | Frame

_APART_FROM = 32 << 10  # bodies from this size on are not copied behind their header


_SLICE = 64

_ABANDONED: list[Body] = []  # known by identity


class InHand(Protocol):
    """Who counts a request as long as it has no answer."""

    in_hand: int


class WaitingRoom(Protocol):
    """Who keeps an answer that was not there when its turn ended."""

    def arrived(self, later: "LaterAnswer") -> None: ...


class LaterAnswer:
    """The answer to one request, as long as it is not there; to be filled exactly once, by the event loop's thread."""

    __slots__ = ("_counter", "_room", "frame", "request")

    def __init__(self, request: RemotingCommand) -> None:
        self.request = request
        self.frame: Frame | None = None  # None as long as it is open; b"" when nothing will be sent
        self._counter: InHand | None = None
        self._room: WaitingRoom | None = None

    @property
    def is_open(self) -> bool:
        """Whether somebody still waits for it."""
        return self.frame is None

    def fill(self, answer: Answer | None) -> None:
        """Give the answer; None means that there will be none. After the connection was lost nothing happens."""
        if self.frame is not None:
            assert self.frame is _ABANDONED, "answered twice"
            return
        if answer.__class__ is bytes:
            self.frame = answer
        else:
            self.frame = b"" if answer is None else answer_frame(answer)
        if self._counter is not None:
            self._counter.in_hand -= 1
        if self._room is not None:
            self._room.arrived(self)

    def refuse(self, error: RequestError) -> None:
        """Give an error for an answer."""
        self.fill(refusal(self.request, error))

    def counted_by(self, counter: InHand) -> None:
        """Be one of the requests in hand until the answer is there."""
        if self.frame is None:
            self._counter = counter
            counter.in_hand += 1

    def wait_in(self, room: WaitingRoom) -> None:
        """The turn is over: tell the room when the answer is there."""
        assert self.frame is None
        self._room = room

    def abandon(self) -> None:
        """Nobody waits any more."""
        if self.frame is None:
            self.frame = _ABANDONED
            if self._counter is not None:
                self._counter.in_hand -= 1
            if self._room is not None:
                self._room.arrived(self)


Outcome: TypeAlias = Answer | LaterAnswer | Awaitable[Answer | None] | None


def answer_frame(answer: Answer) -> Frame:
    """The bytes of an answer; one that does not fit into a frame becomes an error."""
    if not isinstance(answer, RemotingCommand):
        return answer
    body = answer.body
    try:
        if len(body) >= _APART_FROM:
            return [encode_head(answer, len(body)), body]
        return encode(answer)
    except CommandTooLarge as error:
        remark = f"the answer is too large: {error}"
        return encode(RemotingCommand(ResponseCode.SYSTEM_ERROR, answer.opaque, RESPONSE_FLAG, remark=remark))


def refusal(request: RemotingCommand, error: RequestError) -> RemotingCommand:
    """The answer that says what the error says."""
    fields = None if error.ext_fields is None else dict(error.ext_fields)
    return request.answer(error.code, error.remark, fields)


class Speaker(Protocol):
    """Who has something to write when the turn ends."""

    def flush(self) -> None: ...


class LeftWaiting(Protocol):
    """Who has requests that were read and could not be begun."""

    def refuse_backlog(
        self, overdue: Callable[[RemotingCommand, int, int], RequestError | None], not_before_ms: int
    ) -> bool: ...


class Turn:
    """A turn of the event loop: all that one look at the sockets brought, from all connections.

    data of A ─▶ handlers ┐
    data of B ─▶ handlers ├─▶ callbacks of the turn's end (the broker stores all sends as one group) ─▶ one write each
    data of C ─▶ handlers ┘

    The end is scheduled with `call_soon` by the first connection that has something to say. Both uvloop and asyncio run
    it after every socket that was ready has been read, and before the sockets are asked again.

    With limits a turn is short whatever comes: each connection has a share of it, the rest waits in the connection.
    """

    def __init__(self, limits: TurnLimits | None = None) -> None:
        self.limits = limits
        self.number = 0
        self.until = 0.0  # when it has lasted long enough; 0: it has not begun
        self._speakers_before = 0
        self._speakers: list[Speaker] = []
        self._callbacks: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_scheduled = False
        self.on_left_waiting: Callable[[LeftWaiting], None] | None = None

    def shares(self, limits: TurnLimits) -> tuple[int, int]:
        """How many requests and bytes a connection may bring in this turn: all that others do not need."""
        if not self.until:
            self.begin(limits)
        others = max(len(self._speakers), self._speakers_before, 1)
        return (
            max(limits.requests // others, limits.requests_each_at_least),
            max(limits.read_size // others, limits.read_size_each_at_least),
        )

    def begin(self, limits: TurnLimits) -> None:
        """The first of its requests is there."""
        self.until = perf_counter() + limits.seconds

    @property
    def is_long(self) -> bool:
        """Whether it has lasted long enough."""
        return perf_counter() > self.until > 0

    @property
    def slice_size(self) -> int:
        """How many requests of a connection are handled before the clock is looked at again."""
        return _SLICE if self.limits is None or not self.is_long else self.limits.requests_each_at_least

    def left_waiting(self, waiting: LeftWaiting) -> None:
        """Somebody begins to have such requests."""
        if self.on_left_waiting is not None:
            self.on_left_waiting(waiting)

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call at the end of every turn, before anything is written; what it raises is a bug and is logged."""
        self._callbacks.append(callback)

    def will_speak(self, speaker: Speaker) -> None:
        """Flush this one when the turn ends; to be said once per turn."""
        self._speakers.append(speaker)
        if not self._is_scheduled:
            self._is_scheduled = True
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self.end)

    def end(self) -> None:
        """Complete and write."""
        for callback in self._callbacks:
            try:
                callback()
            except Exception:
                _logger.exception("a callback of the turn's end failed callback=%r", callback)
        self._is_scheduled = False
        self.number += 1
        self.until = 0.0
        speakers, self._speakers = self._speakers, []
        self._speakers_before = len(speakers)
        for speaker in speakers:
            try:
                speaker.flush()
            except Exception:
                _logger.exception("a connection could not be written speaker=%r", speaker)
