"""One connection: frames in, answers out, and calls in the other direction.

    data ─▶ Inbox ─▶ requests ─▶ router ─▶ answers ─▶ Outbox ─▶ one write when the turn ends, or earlier when it is much
              │   └▶ answers  ─▶ calls
              └─ more than little ─▶ the turn's ring ─▶ a slice at a time

Everything is bounded:
    requests of one turn             beyond what is little they wait here for their time, and the socket is not read
    requests that wait for answers   beyond the limit the socket is not read
    answers that are not sent yet    beyond the high-water mark no request is taken up and the socket is not read
    bytes that the peer never takes  beyond the last mark the connection is cut off
    calls of our own                 beyond the limit a call is refused
So a peer that does not read is not read either, as RocketMQ does it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Any, Protocol, TypeVar, cast

from skyrocket.clock import Clock
from skyrocket.protocol.codes import LanguageCode
from skyrocket.protocol.command import ONEWAY_FLAG, RESPONSE_FLAG, Body, RemotingCommand
from skyrocket.protocol.errors import ProtocolError, RequestError
from skyrocket.protocol.frames import FrameReader, encode
from skyrocket.protocol.requests.header import Header, Request
from skyrocket.protocol.send_shapes import ShapedSend
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.answers import Frame, Handles, LaterAnswer, answer_frame, refusal
from skyrocket.remoting.calls import Calls, next_opaque
from skyrocket.remoting.errors import ConnectionLost, RemotingError
from skyrocket.remoting.exchange import ONLY_SUCCESS, Reply, command_of, reply_of
from skyrocket.remoting.inbox import Inbox
from skyrocket.remoting.limits import ConnectionLimits
from skyrocket.remoting.outbox import SIZE_OF_LATER, Outbox
from skyrocket.remoting.peer import CloseReason, Peer
from skyrocket.remoting.turn import Turn

_logger = logging.getLogger(__name__)

A = TypeVar("A", bound=Header)

# Answers of so many bytes leave before their turn ends. A consumer of eight queues waited for all eight answers, and we
# for its next eight requests: each of us on a core of its own, and one of them always idle.
_EARLY_FROM = 128 << 10
_JOIN_BELOW = 64 << 10  # pieces of less than this in all are joined: one copy is cheaper than many pieces


class Owner(Protocol):
    """The server or client a connection belongs to."""

    def opened(self, connection: "Connection") -> None: ...

    def closed(self, connection: "Connection", reason: CloseReason) -> None: ...

    def holds(self, connection: "Connection", size: int, *, is_new: bool) -> None:
        """So many bytes wait, for the rest of their frame or for their time; `is_new`: others than before."""


class Connection(asyncio.Protocol):
    """A Peer on a transport."""

    def __init__(
        self, remote_address: Address, router: Handles, turn: Turn, owner: Owner, limits: ConnectionLimits, clock: Clock
    ) -> None:
        self.remote_address = remote_address
        self.attributes: dict[str, Any] = {}
        self.version = 0
        self.language: LanguageCode | None = None
        self.router = router
        self.last_activity = clock.monotonic()
        self.closing_since: float | None = None
        self.handshake_since: float | None = None
        self.lost_before_answer = ""  # what is said of a connection that brings nothing at all
        self._turn = turn
        self._owner = owner
        self._limits = limits
        self._monotonic = clock.monotonic
        self._reader = FrameReader(limits.max_frame_size, router.shapes)
        self._inbox = Inbox(self._reader, turn, clock.monotonic)
        self._transport: asyncio.Transport | None = None
        self._calls = Calls(str(remote_address), limits.max_calls)
        self._close_callbacks: list[Callable[[Peer, CloseReason], None]] = []
        self._close_reason: CloseReason | None = None
        self._is_lost = False

        self._out = Outbox()
        self._will_flush = False
        self._unanswered: set[LaterAnswer] = set()
        self._holds_bytes = False
        self._is_in_ring = False
        self._has_heard_all = False
        self._write_is_full = False
        self._takes_requests = True
        self._is_reading = True

    def __repr__(self) -> str:
        return f"<connection to {self.remote_address}>"

    # ── what handlers use ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_open(self) -> bool:
        return self._transport is not None and self.closing_since is None and not self._is_lost

    @property
    def is_writable(self) -> bool:
        return self.is_open and not self._write_is_full

    @property
    def unanswered_count(self) -> int:
        """Requests that wait for their answers."""
        return len(self._unanswered) + self._out.laters

    @property
    def calls_in_flight(self) -> int:
        return len(self._calls)

    @property
    def unsent_size(self) -> int:
        """Bytes that wait to be taken by the peer."""
        waiting = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return waiting + self._out.size

    @property
    def incomplete_size(self) -> int:
        """Bytes held of a frame that is not complete."""
        return len(self._reader.pending)

    @property
    def frames_received(self) -> int:
        """Frames that were complete."""
        return self._reader.frames_received

    async def call(
        self,
        request: Request[A],
        body: Body = b"",
        *,
        timeout_seconds: float = 3.0,
        accepted: Collection[int] = ONLY_SUCCESS,
    ) -> Reply[A]:
        return reply_of(request, await self.invoke(command_of(request, body), timeout_seconds), accepted)

    async def invoke(self, command: RemotingCommand, timeout_seconds: float = 3.0) -> RemotingCommand:
        answer = self.ask(command, timeout_seconds)
        try:
            return await answer
        finally:
            self._calls.forget(command.opaque)  # whoever waited may have been cancelled

    def ask(self, command: RemotingCommand, timeout_seconds: float) -> "asyncio.Future[RemotingCommand]":
        """The answer to come; raises ConnectionLost or TooManyCalls, the future the same or CallTimeout."""
        command.opaque = self.next_call()
        return self.ask_encoded(command.opaque, command.code, encode(command), timeout_seconds)

    def next_call(self) -> int:
        """An opaque number for a request that the caller encodes himself; raises the same."""
        if not self.is_open:
            raise self._lost_error(None)
        return self._calls.number()

    def ask_encoded(
        self, opaque: int, code: int, frame: bytes, timeout_seconds: float
    ) -> "asyncio.Future[RemotingCommand]":
        """Send such a request: the answer to come."""
        answer = self._calls.expect(opaque, code, timeout_seconds)
        self._put(frame)
        return answer

    def send_oneway(self, request: Request[Any], body: Body = b"") -> bool:
        return self.send(command_of(request, body, ONEWAY_FLAG))

    def send(self, command: RemotingCommand) -> bool:
        """The same with a plain command, which gets its opaque number here."""
        if not self.is_writable:
            return False
        command.opaque = next_opaque()
        self._put(encode(command))
        return True

    def on_close(self, callback: Callable[[Peer, CloseReason], None]) -> None:
        if self._is_lost:
            callback(self, self._close_reason or CloseReason.ERROR)
        else:
            self._close_callbacks.append(callback)

    def close(self, reason: CloseReason = CloseReason.LOCAL) -> None:
        if self.closing_since is not None or self._is_lost:
            return
        self.closing_since = self._monotonic()
        self._close_reason = reason
        self._inbox.clear()
        self._adjust_reading()
        self._speak()

    def abort(self, reason: CloseReason) -> None:
        """End it now; what was not sent is lost."""
        if self.closing_since is None:
            self.closing_since = self._monotonic()
            self._close_reason = reason
        if self._transport is not None:
            self._transport.abort()

    def fail_calls(self, error: Callable[[], RemotingError]) -> None:
        """End all calls to the peer with an error."""
        self._calls.fail_all(error)

    def take_no_requests(self) -> None:
        """Read nothing any more; what is in hand will be answered."""
        self._takes_requests = False
        self._adjust_reading()

    # ── what the transport calls ─────────────────────────────────────────────────────────────────────────────────────

    def accepted(self, transport: asyncio.Transport) -> None:
        """The socket is there, but what kind of bytes will come is not known yet."""
        self._transport = transport

    def comes_from(self, source: Address) -> None:
        """A proxy has said whose connection it is."""
        self.remote_address = source
        self._calls = Calls(str(source), self._limits.max_calls)

    def handshake_began(self) -> None:
        """TLS will have to be agreed on before anything is heard."""
        self.handshake_since = self._monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        below = cast(asyncio.Transport, transport)  # uvloop's are not derived from it
        self.accepted(below)
        self.handshake_since = None
        below.set_write_buffer_limits(self._limits.write_high_water, self._limits.write_low_water)
        self._owner.opened(self)

    def data_received(self, data: bytes) -> None:
        self.last_activity = self._monotonic()
        reader = self._reader
        before = reader.frames_received
        try:
            commands = self._inbox.at_once(data)
            if commands is None:
                self._holds_bytes = True
                self._adjust_reading()
                self._go_on()
            elif commands:
                if left := self._handle(commands):
                    self._leave(left)
                self._inbox.handled()
        except ProtocolError as error:
            self._no_frames(error)
        if self._turn.until:
            self._turn.will_end()
        if reader.pending or self._holds_bytes:
            self._tell_held(before)

    def eof_received(self) -> bool:
        if self._inbox.has_left:
            self._has_heard_all = True
        else:
            self.close(CloseReason.PEER)
        return True  # keep open what can be: answers of this turn are still to be sent

    def pause_writing(self) -> None:
        self._write_is_full = True
        self._adjust_reading()

    def resume_writing(self) -> None:
        self._write_is_full = False
        self.last_activity = self._monotonic()
        self._go_on()

    def connection_lost(self, error: Exception | None) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        reason = self._close_reason or (CloseReason.PEER if error is None else CloseReason.ERROR)
        self._close_reason = reason
        self._inbox.clear()
        self._reader.forget()
        unanswered = [*self._unanswered, *self._out.clear()]
        self._unanswered.clear()
        for later in unanswered:
            later.abandon()
        self._calls.fail_all(lambda: self._lost_error(error))
        self._owner.closed(self, reason)
        for callback in self._close_callbacks:
            try:
                callback(self, reason)
            except Exception:
                _logger.exception("a close callback failed peer=%s", self.remote_address)
        self._close_callbacks.clear()

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def take_slice(self, most: int) -> tuple[int, bool]:
        """Its time in the ring: handle the next few requests; how many, and whether more can be handled."""
        inbox, reader = self._inbox, self._reader
        before = reader.frames_received
        self._is_in_ring = False
        if not self._has_room:
            return 0, False
        try:
            commands = inbox.take(most)
        except ProtocolError as error:
            self._no_frames(error)
            return len(error.commands), False
        if reader.pending or self._holds_bytes:
            self._tell_held(before)
        left = self._handle(commands) if commands else None
        inbox.handled()
        if left:
            self._leave(left)
            return len(commands) - len(left), False
        if inbox.has_left:
            self._is_in_ring = True
            return len(commands), True
        if self._has_heard_all:
            self.close(CloseReason.PEER)
        self._go_on()
        return len(commands), False

    def _leave(self, commands: list[RemotingCommand]) -> None:
        """There is no room for the answers to these."""
        self._inbox.put_back(commands)
        if self._inbox.begins_to_wait():
            self._turn.left_waiting(self)
        self._adjust_reading()
        self._speak()  # when what is there has been written, there may be room

    def _tell_held(self, frames_before: int) -> None:
        size = len(self._reader.pending) + self._inbox.unread_size
        self._holds_bytes = size > 0
        self._owner.holds(self, size, is_new=self._reader.frames_received != frames_before)

    def _no_frames(self, error: ProtocolError) -> None:
        self._handle(error.commands)
        _logger.debug("no frames peer=%s reason=%s", self.remote_address, error.reason)
        self.close(CloseReason.PROTOCOL)

    def _handle(self, commands: list[RemotingCommand]) -> list[RemotingCommand]:
        """Handle in a row, until there is too much to send or to wait for; those that are left."""
        handle, out, limits = self.router.handle, self._out, self._limits
        high_water = limits.write_high_water
        handled = False
        at, end, may_run = 0, len(commands), len(commands) > 1
        while at < end:
            command = commands[at]
            if command.flag & RESPONSE_FLAG:
                self._calls.answered(command)
                at += 1
                continue
            if out.size > high_water or self._write_is_full or len(self._unanswered) >= limits.max_unanswered:
                break
            handled = True
            if may_run and command.__class__ is ShapedSend and command.known_text is not None:
                most = (high_water - out.size) // SIZE_OF_LATER + 1
                run = self.router.handle_run(self, commands[at : at + most])
                if run is not None:
                    out.put(run)
                    at += len(run.requests)
                    self._turn.taken += len(run.requests)
                    continue
                may_run = False  # with this one it would be tried in vain for each
            frame = handle(self, command)
            if frame is not None:
                out.put(frame)
            at += 1
            if out.size >= _EARLY_FROM and at < end and not out.laters and not self._is_lost:
                pieces, size, _ = out.take()
                self._write(pieces, size)
        left = commands[at:]
        if handled and not self._will_flush:
            self._speak()  # also with nothing to say: others may wait for the turn's end
        return left

    @property
    def _has_room(self) -> bool:
        return not self._write_is_full and len(self._unanswered) < self._limits.max_unanswered

    def _go_on(self) -> None:
        """Let what was left lying be taken up, if there is room; read when nothing is left."""
        if not self._inbox.has_left:
            self._inbox.waiting_since = None
            self._adjust_reading()
        elif self._has_room and not self._is_in_ring:
            self._is_in_ring = True
            self._turn.enter_ring(self)

    def refuse_backlog(
        self, overdue: Callable[[RemotingCommand, int, int], RequestError | None], not_before_ms: int
    ) -> bool:
        """Refuse what was left lying for too long; whether anything is still left.

        `overdue` is asked with a request, how many milliseconds it waits and how many wait after it; it refuses nothing
        that has waited for less than `not_before_ms`.
        """
        inbox = self._inbox
        if inbox.waiting_since is None or not inbox.has_left or self.closing_since is not None:
            return False
        if inbox.waited_ms < not_before_ms:
            return True
        commands, waited_ms = inbox.take_waiting()
        kept: list[RemotingCommand] = []
        for number, command in enumerate(commands):
            if command.flag & RESPONSE_FLAG:
                self._calls.answered(command)
            elif (error := overdue(command, waited_ms, len(commands) - number - 1)) is None:
                kept.append(command)
            elif not command.is_oneway:
                self._put(answer_frame(refusal(command, error)))
        inbox.put_back(kept)
        self._go_on()
        return inbox.has_left

    def _adjust_reading(self) -> None:
        wanted = (
            self._takes_requests
            and self.closing_since is None
            and not self._write_is_full
            and not self._inbox.has_left
            and len(self._unanswered) < self._limits.max_unanswered
        )
        if wanted is self._is_reading or self._transport is None or self._is_lost:
            return
        self._is_reading = wanted
        if self._transport.is_closing():
            return
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    # ── answers and calls ────────────────────────────────────────────────────────────────────────────────────────────

    def arrived(self, later: LaterAnswer) -> None:
        """An answer that was not there when its turn ended."""
        self._unanswered.discard(later)
        assert later.frame is not None
        if later.frame:
            self._put(later.frame)
        if not self._is_reading:
            self._go_on()

    def flush(self) -> None:
        """The turn is over: write all there is."""
        self._will_flush = False
        if self._out and not self._is_lost:
            pieces, size, waiting = self._out.take()
            for later in waiting:
                later.wait_in(self)
            self._unanswered.update(waiting)
            if pieces:
                self._write(pieces, size)
        if self.closing_since is not None:
            if self._transport is not None:
                self._transport.close()
        elif self._unanswered or not self._is_reading:
            self._go_on()

    def _write(self, pieces: list[Body], size: int) -> None:
        transport = self._transport
        assert transport is not None
        if transport.is_closing():
            return
        if len(pieces) == 1:
            transport.write(pieces[0])
        elif size < _JOIN_BELOW:
            transport.write(b"".join(pieces))
        else:
            transport.writelines(pieces)
        if self._write_is_full and transport.get_write_buffer_size() > self._limits.max_unsent:
            _logger.warning("a peer does not read peer=%s unsent=%d", self.remote_address, self.unsent_size)
            self.abort(CloseReason.SLOW)

    def _put(self, frame: Frame) -> None:
        self._out.put(frame)
        if not self._write_is_full:
            self.last_activity = self._monotonic()
        self._speak()

    def _speak(self) -> None:
        if not self._will_flush and not self._is_lost:
            self._will_flush = True
            self._turn.will_speak(self)

    def _lost_error(self, cause: BaseException | None) -> ConnectionLost:
        reason = "the connection is not open" if self._close_reason is None else self._close_reason.value
        if self._close_reason in (CloseReason.PEER, CloseReason.ERROR) and not self.frames_received:
            reason = self.lost_before_answer or reason
        return ConnectionLost(str(self.remote_address), reason, cause)
