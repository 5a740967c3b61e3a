"""OutboxRelay: sends what committed transactions have left in the outbox, in the order of their numbers.

    async with Producer("Shop", "127.0.0.1:9876") as producer, OutboxRelay(outbox, database, producer) as relay:
        …; relay.wake()        # after a commit; without it the relay looks every `poll_seconds`

A row is removed after a broker has confirmed its message. A crash in between sends it again: under the same message id,
with the same number, to the same queue, so that our brokers drop it inside their window, and `Once` behind it.
Messages with the same sharding key leave one after the other; one that fails holds up those behind it, but no others.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from skyrocket.client.core.errors import ClientError, WrongUse
from skyrocket.client.core.lifecycle import Startable, State
from skyrocket.client.exactly_once.databases import Source, transaction
from skyrocket.client.exactly_once.outbox import Outbox, PendingMessage
from skyrocket.client.producer.producer import Producer
from skyrocket.client.sending.send_number import SendNumber
from skyrocket.errors import SkyrocketError
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

A = TypeVar("A")
R = TypeVar("R")

_LONGEST_PAUSE: Final = 30.0


class OutboxRelay(Startable):
    """One per outbox: two would send everything twice. The producer must run as long as the relay."""

    def __init__(
        self,
        outbox: Outbox,
        database: Source,
        producer: Producer,
        *,
        batch: int = 100,
        poll_seconds: float = 0.5,
        stop_seconds: float = 10.0,
    ) -> None:
        if batch < 1 or poll_seconds <= 0:
            raise WrongUse("batch and poll_seconds must be positive")
        self._outbox = outbox
        self._database = database
        self._producer = producer
        self._batch = batch
        self._poll_seconds = poll_seconds
        self._stop_seconds = stop_seconds
        self._wake = asyncio.Event()
        self._thread: ThreadPoolExecutor | None = None
        self._task: asyncio.Task[None] | None = None
        self.sent = 0
        self.failed = 0

    def __repr__(self) -> str:
        return f"relay of outbox {self._outbox.name}"

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Begin with what an earlier relay has left."""
        self._check_new()
        self._state = State.RUNNING
        self._task = asyncio.create_task(self._run(), name=str(self))

    async def stop(self) -> None:
        """End after the messages that are being sent; may be called again. What is left waits for the next start."""
        if self._state is not State.RUNNING:
            return
        self._state = State.STOPPED
        self._wake.set()
        if self._task is not None:
            _, late = await asyncio.wait((self._task,), timeout=self._stop_seconds)
            for task in late:
                _logger.warning("%s is given up in the middle of a round: what was sent is sent again", self)
                task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._thread is not None:
            self._thread.shutdown(wait=False)

    def wake(self) -> None:
        """Something was committed: look now."""
        self._wake.set()

    async def _run(self) -> None:
        pause = self._poll_seconds
        while self._state is State.RUNNING:
            self._wake.clear()
            failed = self.failed
            try:
                await self.send_pending()
            except Exception:
                # The database is away, or the table: nothing was removed, so nothing is lost.
                _logger.exception("%s could not do a round, it tries again in %g s", self, pause)
                self.failed += 1
            pause = self._poll_seconds if failed == self.failed else min(pause * 2, _LONGEST_PAUSE)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):  # not wait_for: in 3.11 it goes on when it is woken and cancelled
                    await self._wake.wait()

    # ── one round ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def send_pending(self) -> int:
        """Send all that waits, once; returns how many messages were confirmed."""
        after, confirmed = 0, 0
        blocked: set[str] = set()
        while True:
            rows = await self._in_thread(self._read, after)
            if not rows:
                return confirmed
            after = rows[-1].number
            lanes: dict[str, list[PendingMessage]] = {}
            for row in rows:
                if row.lane not in blocked:
                    lanes.setdefault(row.lane, []).append(row)
            done: list[int] = []
            try:
                results = await asyncio.gather(*(self._send_lane(lane, done) for lane in lanes.values()))
            finally:
                if done:
                    await self._in_thread(self._remove, done)
            blocked.update(lane for lane, went_well in zip(lanes, results, strict=True) if not went_well)
            confirmed += len(done)
            if len(rows) < self._batch or self._state is State.STOPPED:
                return confirmed

    async def _send_lane(self, rows: Sequence[PendingMessage], done: list[int]) -> bool:
        for row in rows:
            number = SendNumber(f"outbox {self._outbox.name}", row.number)
            try:
                await self._producer.send_numbered(row.message, number, unique_key=row.unique_key)
            except (ClientError, RemotingError, SkyrocketError) as error:
                self.failed += 1
                _logger.warning(
                    "%s: a message waits, with all of its sharding key behind it id=%d reason=%s",
                    self,
                    row.number,
                    error,
                )
                return False
            done.append(row.number)
            self.sent += 1
        return True

    def _read(self, after: int) -> list[PendingMessage]:
        with transaction(self._database) as statements:
            return self._outbox.pending(statements, after, self._batch)

    def _remove(self, numbers: list[int]) -> None:
        with transaction(self._database) as statements:
            self._outbox.remove(statements, numbers)

    async def _in_thread(self, work: Callable[[A], R], argument: A) -> R:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, f"skyrocket-{self._outbox.name}")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, argument)
