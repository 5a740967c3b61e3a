"""Brings queues up to date after puts, in the event loop, once for all of a turn; pulls that wait are woken then.

Plain messages and batches are stored when the turn ends: their answers leave first.

With SYNC_FLUSH nobody reads what the disk does not have. Whoever put a message without waiting for the disk
(WAIT=false, messages sent back, delayed messages) need not come again: the rest is dispatched when it has been flushed.
The same goes for what the log's writer still has in its hands because the disk stands still.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from skyrocket.config.sections import FlushDiskType
from skyrocket.errors import StoreError
from skyrocket.store.message_store import MessageStore
from skyrocket.store.record_run import last_end

_AGAIN_SECONDS = 0.01

_logger = logging.getLogger(__name__)


class Dispatching:
    """Runs the store's dispatch once for any number of requests."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._is_scheduled = False
        self._waits_for_disk = store.config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        self._awaits_flush = False
        self._awaits_writer = False
        self.on_growth: list[Callable[[], None]] = []  # told first, once a turn: the log has grown
        store.intake.after_put = self.request

    def request(self) -> None:
        """Dispatch as soon as the turn is over."""
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._is_scheduled = False
        try:
            for grown in self.on_growth:
                grown()
        finally:
            self._dispatch_now()

    def _dispatch_now(self) -> None:
        flushed = self._store.commit_log.flushed_offset
        try:
            self._store.dispatch()
        except StoreError:
            _logger.exception("dispatch failed, no more messages are taken path=%s", self._store.paths.root)
            return
        self._come_again()
        # Not for what dispatch has seen: the rest of a slave's last record comes from its master, not from the disk.
        if self._waits_for_disk and not self._awaits_flush and self._store.commit_log.readable_offset > flushed:
            self._await_flush()

    def _come_again(self) -> None:
        """Where the disk has held up something: when it is written, or soon."""
        log = self._store.commit_log
        if log.is_behind and not self._awaits_writer:
            self._awaits_writer = True
            when_written(self._store, log.written_offset, self._written)
            return
        # What a slave has copied is not pending: after its master's last bytes nothing else would have it dispatched.
        is_held_up = bool(log.pending) and last_end(log.pending[0]) <= self._store.confirm_offset
        if is_held_up or self._store.queues_waited:
            asyncio.get_running_loop().call_later(_AGAIN_SECONDS, self.request)

    def _written(self, ok: bool) -> None:
        self._awaits_writer = False
        if ok:
            self.request()

    def _await_flush(self) -> None:
        self._awaits_flush = True
        when_flushed(self._store, self._store.commit_log.readable_offset, self._flushed)

    def _flushed(self, ok: bool) -> None:
        self._awaits_flush = False
        if ok:
            self.request()


def when_flushed(store: MessageStore, end_offset: int, settled: Callable[[bool], None]) -> None:
    """Call back in this event loop: True when all before the offset is on disk, False if that failed."""
    loop = asyncio.get_running_loop()

    def flushed(ok: bool) -> None:  # in the flusher's thread
        with contextlib.suppress(RuntimeError):  # the loop has ended, nobody waits
            loop.call_soon_threadsafe(settled, ok)

    store.flusher.when_flushed(end_offset, flushed)


def when_written(store: MessageStore, end_offset: int, settled: Callable[[bool], None]) -> None:
    """Call back in this event loop: True when the page cache has all before the offset, False if that failed."""
    loop = asyncio.get_running_loop()

    def written(ok: bool) -> None:  # in the writer's thread
        with contextlib.suppress(RuntimeError):  # the loop has ended, nobody waits
            loop.call_soon_threadsafe(settled, ok)

    store.commit_log.writer.when_written(end_offset, written)


async def is_flushed(store: MessageStore, end_offset: int, timeout_ms: int) -> bool | None:
    """Wait for the disk; None when it took too long."""
    durable: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    when_flushed(store, end_offset, lambda ok: None if durable.done() else durable.set_result(ok))
    try:
        return await asyncio.wait_for(durable, timeout_ms / 1000)
    except TimeoutError:
        return None
