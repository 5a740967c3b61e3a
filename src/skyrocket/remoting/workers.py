"""A few threads for handlers that read much: the event loop goes on while they wait for the disk.

    workers = Workers(4, clock)
    router.register(QUERY_MESSAGE, workers.beside(query, query_class), query_class)

Only handlers that touch nothing but the store may run here: tables belong to the event loop. Requests beyond the
number of threads wait in the order of their arrival; their number is bounded by the limits of their classes.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from skyrocket.clock import Clock
from skyrocket.protocol.command import RemotingCommand
from skyrocket.remoting.admission import RequestClass
from skyrocket.remoting.answers import Answer, LaterAnswer, Outcome
from skyrocket.remoting.peer import Peer


@dataclass(slots=True, eq=False)
class _Job:
    """A request that waits for a thread, or has one."""

    work: Callable[[], Answer | None]
    answer: "asyncio.Future[Answer | None]"
    request_class: RequestClass
    since: float  # monotonic


class Workers:
    """The threads and those who wait for one; everything but the work itself happens in the event loop's thread."""

    def __init__(self, threads: int, clock: Clock) -> None:
        assert threads > 0
        self.threads = threads
        self.on_wait: Callable[[], None] | None = None  # called when a request begins to wait
        self._clock = clock
        self._waiting: deque[_Job] = deque()
        self._running = 0
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="worker")  # starts none before it is needed

    @property
    def waiting_count(self) -> int:
        """Requests that wait for a thread."""
        return len(self._waiting)

    @property
    def head_wait_ms(self) -> int:
        """How long the first of them has waited."""
        return int((self._clock.monotonic() - self._waiting[0].since) * 1000) if self._waiting else 0

    def beside(
        self, handler: Callable[[Peer, RemotingCommand], Outcome], request_class: RequestClass
    ) -> Callable[[Peer, RemotingCommand], Outcome]:
        """A handler that runs the given one in a thread; that one must give its answer at once."""

        def handle(peer: Peer, request: RemotingCommand) -> Outcome:
            def work() -> Answer | None:
                outcome = handler(peer, request)
                assert outcome is None or isinstance(outcome, RemotingCommand | bytes | list), outcome
                assert not isinstance(outcome, LaterAnswer)
                return outcome

            return self._run(work, request_class)

        return handle

    async def _run(self, work: Callable[[], Answer | None], request_class: RequestClass) -> Answer | None:
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        job = _Job(work, answer, request_class, self._clock.monotonic())
        if self._running < self.threads:
            self._begin(job)
        else:
            self._waiting.append(job)
            if self.on_wait is not None:
                self.on_wait()
        return await answer

    def _begin(self, job: _Job) -> None:
        self._running += 1
        done = asyncio.get_running_loop().run_in_executor(self._executor, job.work)
        done.add_done_callback(lambda finished: self._finished(job, finished))

    def _finished(self, job: _Job, done: "asyncio.Future[Answer | None]") -> None:
        self._running -= 1
        if done.cancelled():
            job.answer.cancel()
        elif (error := done.exception()) is not None:
            if not job.answer.done():
                job.answer.set_exception(error)
        elif not job.answer.done():
            job.answer.set_result(done.result())
        while self._waiting and self._running < self.threads:
            following = self._waiting.popleft()
            if not following.answer.done():  # else its task was cancelled
                self._begin(following)

    def sweep(self) -> None:
        """Refuse those at the head that have waited longer than their class allows."""
        now = self._clock.monotonic()
        while self._waiting:
            job = self._waiting[0]
            if not job.answer.done():
                waited_ms = round((now - job.since) * 1000)
                error = job.request_class.overdue(waited_ms, len(self._waiting) - 1)
                if error is None:
                    return
                job.answer.set_exception(error)
            self._waiting.popleft()

    async def close(self) -> None:
        """Begin nothing more, and wait for what runs."""
        for job in self._waiting:
            job.answer.cancel()
        self._waiting.clear()
        await asyncio.to_thread(self._executor.shutdown, True, cancel_futures=True)
