"""What a handler may return: an answer, an answer that comes later, or none.

    return request.answer(SUCCESS)          an immediate answer; bytes or pieces of an encoded frame will do as well
    return LaterAnswer(request)             keep it and `fill` it: at the turn's end, from a timer, from a callback
    return LaterRun(requests)               the same for many in a row that the handler took together
    return some_coroutine(...)              for the few that must wait; the router makes a task and fills a LaterAnswer
    return None                             never answered

Answers that are filled before the turn ends leave with the turn's single write and in the order of the requests. What
is filled after that leaves with the turn in which it is filled.
"""

from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeAlias

from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import RESPONSE_FLAG, Body, RemotingCommand
from skyrocket.protocol.errors import CommandTooLarge, RequestError
from skyrocket.protocol.frames import encode, encode_head
from skyrocket.protocol.send_shapes import SendShapes
from skyrocket.remoting.peer import Peer

Frame: TypeAlias = bytes | list[Body]  # an encoded command, whole or in pieces
Answer: TypeAlias = RemotingCommand | Frame

_APART_FROM = 32 << 10  # bodies from this size on are not copied behind their header

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


class LaterRun:
    """The answers to requests that came in a row and are answered together when the turn ends.

    Nearly all sends are such: an object for each of their answers would be a good part of what they cost.
    """

    __slots__ = ("_counter", "_is_abandoned", "_laters", "frames", "requests")

    def __init__(self, requests: Sequence[RemotingCommand]) -> None:
        self.requests = requests
        self.frames: list[bytes] | None = None  # None as long as they are not there
        self._laters: list[LaterAnswer] | None = None  # when they do not come together after all
        self._counter: InHand | None = None
        self._is_abandoned = False

    def fill(self, frames: list[bytes]) -> None:
        """Give all answers, in the order of the requests. After the connection was lost nothing happens."""
        assert self.frames is None, "answered twice"
        assert self._laters is None, "answered one by one"
        self.frames = frames
        self._count_no_more()

    def counted_by(self, counter: InHand) -> None:
        """Be so many of the requests in hand until the answers are there."""
        self._counter = counter
        counter.in_hand += len(self.requests)

    def one_by_one(self) -> list[LaterAnswer]:
        """An answer for each request that has none, from now on instead of this one."""
        if self.frames is not None:
            return []
        if self._laters is None:
            self._laters = [LaterAnswer(request) for request in self.requests]
            if self._is_abandoned:
                self.abandon()
            elif self._counter is not None:
                for later in self._laters:
                    later.counted_by(self._counter)
                self._count_no_more()
        return self._laters

    def abandon(self) -> None:
        """Nobody waits any more."""
        self._is_abandoned = True
        self._count_no_more()
        for later in self._laters or ():
            later.abandon()

    def _count_no_more(self) -> None:
        if self._counter is not None:
            self._counter.in_hand -= len(self.requests)
            self._counter = None


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


class Handles(Protocol):
    """Who gives the answers: a Router, or something before it."""

    @property
    def shapes(self) -> SendShapes | None:
        """Where headers of sends that look alike are known; None when sends do not come here."""

    def handle(self, peer: Peer, request: RemotingCommand) -> Frame | LaterAnswer | None: ...

    def handle_run(self, peer: Peer, requests: Sequence[RemotingCommand]) -> LaterRun | None:
        """What goes back to the first of these, as many as could be handled together; None: handle each of them."""
