"""Refuses what waits for too long, so that clients turn to another broker instead of running into their time-outs.

    read, not begun    a connection's backlog (its peer does not take answers), a query without a thread:
                       after the limit of its class   ─▶ [TIMEOUT_CLEAN_QUEUE], looked for every 10 ms while any wait
    not even read      sends that came while an append stood still for longer than `osPageCacheBusyTimeOutMills`
                       and lie in the sockets now     ─▶ [PCBUSY_CLEAN_QUEUE]
    before the handler an append of another thread stands still, or no transient buffer is free
                                                      ─▶ [REJECTREQUEST]

Appends run in the event loop's thread: while one stands still nothing is read, so the second kind can only be told from
the time that the append took. It ends with the next turn, at the latest 10 ms later: who comes then has not waited.
A pause of the loop for any other reason refuses nobody, as a pause of the JVM does not: what it kept waiting is begun
at once after it. Sends that wait for the disk or a slave are stored, so they are never swept.
"""

import asyncio
import logging
import threading
from typing import Final

from skyrocket.broker.core.request_classes import RequestClasses
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import RequestError
from skyrocket.remoting.admission import REJECTED, page_cache_busy
from skyrocket.remoting.turn import LeftWaiting, Turn
from skyrocket.remoting.workers import Workers
from skyrocket.store.message_store import MessageStore

_logger = logging.getLogger(__name__)

SWEEP_SECONDS: Final = 0.01
_REFUSED_AT_ONCE: Final = 256
_NEVER: Final = 1 << 62


class FastFailure:
    """Watches one broker's sends, backlogs and threads."""

    def __init__(self, store: MessageStore, classes: RequestClasses, workers: Workers, *, enabled: bool = True) -> None:
        self._store = store
        self._classes = classes
        self._workers = workers
        self._enabled = enabled  # otherwise only [REJECTREQUEST] is left
        self._waiting: dict[LeftWaiting, None] = {}
        self._wake = asyncio.Event()
        self._turns_to_clean = 0  # whose sends lay in the sockets while an append stood still
        self._loop_thread = 0

    def watch(self, turn: Turn) -> None:
        """Hear of slow appends, of backlogs and of requests that wait for a thread."""
        if self._enabled:
            self._loop_thread = threading.get_ident()
            self._store.statistics.put_latency.on_slow = self._append_was_slow
            turn.on_left_waiting = self._left_waiting
            self._workers.on_wait = self._wake.set

    def _left_waiting(self, waiting: LeftWaiting) -> None:
        self._waiting[waiting] = None
        self._wake.set()

    # ── appends that stand still ─────────────────────────────────────────────────────────────────────────────────────

    def _append_was_slow(self, took_ms: float) -> None:
        if took_ms > self._store.config.page_cache_busy_ms and threading.get_ident() == self._loop_thread:
            self._clean_sockets(int(took_ms))

    def turn_ended(self) -> None:
        """The turn's messages are stored, or refused."""
        if self._turns_to_clean:
            self._turns_to_clean -= 1
            if self._turns_to_clean:
                return
            self._clean_no_more()
        self.look_at_store()

    def look_at_store(self) -> None:
        """Reject sends while the store could not take them at once."""
        send, store = self._classes.send, self._store
        send.is_rejecting = store.page_cache_busy or store.transient_pool_deficient
        if send.is_rejecting:
            self._wake.set()  # to look again, also when nothing comes any more

    def _clean_sockets(self, took_ms: int) -> None:
        self._turns_to_clean = 2  # this one, and the one that reads what came meanwhile
        send = self._classes.send
        send.rejection = page_cache_busy(took_ms, 0).remark or ""
        send.is_rejecting = True
        # uvloop counts a timer from when the loop last woke, long ago here: the timer is set after it has woken again.
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_later, SWEEP_SECONDS, self._clean_no_more)
        _logger.warning("an append stood still, sends that waited meanwhile are refused took_ms=%d", took_ms)

    def _clean_no_more(self) -> None:
        self._turns_to_clean = 0
        self._classes.send.rejection = REJECTED
        self.look_at_store()

    # ── requests that wait to be begun ───────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Sweep until cancelled; nothing is done while nobody waits."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting or self._workers.waiting_count or self._classes.send.is_rejecting:
                await asyncio.sleep(SWEEP_SECONDS)
                self.sweep()

    def sweep(self) -> None:
        """Refuse those whose time is over."""
        not_before_ms = min(each.wait_limit_ms or _NEVER for each in self._classes)
        allowed = sum(each.refused for each in self._classes) + _REFUSED_AT_ONCE
        for waiting in list(self._waiting):
            if sum(each.refused for each in self._classes) > allowed:
                break  # refusing takes time as well: the others are next
            self._waiting.pop(waiting)
            if waiting.refuse_backlog(self._overdue, not_before_ms):
                self._waiting[waiting] = None  # as the last
        self._workers.sweep()
        if self._classes.send.is_rejecting and not self._turns_to_clean:
            self.look_at_store()

    def _overdue(self, request: RemotingCommand, waited_ms: int, behind: int) -> RequestError | None:
        return self._classes.of(request.code).overdue(waited_ms, behind)
