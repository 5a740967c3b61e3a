"""Threads in which plain functions are called: as many as handlers may run at once, and none that an exit waits for.

Python waits at its end for the threads of a ThreadPoolExecutor. A handler that has not ended when the time for it is up
would keep the program alive behind its own goodbye, perhaps for ever. Its message is not confirmed and comes again.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_GOODBYE_SECONDS: Final = 0.2


class HandlerThreads(Executor):
    """Started one by one, when a call finds no idle one; only the event loop submits."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._is_shut = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Callers wait for what they submit, so there are never more calls than handlers at once."""
        if self._is_shut:
            raise RuntimeError(f"the threads of {self._name} have been shut down")
        future: Future[T] = Future()
        self._calls.put((future, partial(fn, *args, **kwargs)))
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._most:
            name = f"{self._name}_{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            _run(*call)
            del call  # or message and result would be kept until the next one comes
            self._idle.release()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Threads end after the call that they are in; `cancel_futures` drops what has not begun.

        Without `wait` those that are idle are seen off all the same, so that none is on its way while Python ends.
        """
        self._is_shut = True
        while cancel_futures:
            try:
                call = self._calls.get_nowait()
            except Empty:
                break
            if call is not None:
                call[0].cancel()
        for _ in self._threads:
            self._calls.put(None)
        deadline = None if wait else time.monotonic() + _GOODBYE_SECONDS
        for thread in self._threads:
            thread.join(None if deadline is None else max(deadline - time.monotonic(), 0.0))


def _run(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - whoever awaits the future gets it
        future.set_exception(error)
    else:
        future.set_result(result)
