"""Event loops: uvloop's, or asyncio's own where that is missing; for a program, or in a thread for code without one.

`waits` and `calls` make methods of asyncio objects into methods that wait for such a thread.
"""

import asyncio
import concurrent.futures
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from skyrocket.errors import SkyrocketError

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")

_SLICE_SECONDS: Final = 0.2  # waiting is done in slices, so that Ctrl-C is heard
_END_SECONDS: Final = 30.0


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, or None for asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run until it returns; SIGINT cancels it."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main)


class LoopThread:
    """A loop that runs until `end`, or as long as the process."""

    def __init__(self, name: str) -> None:
        self._ready: concurrent.futures.Future[asyncio.AbstractEventLoop] = concurrent.futures.Future()
        self._ending: asyncio.Event
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._until_end())

    async def _until_end(self) -> None:
        self._ending = asyncio.Event()
        self._ready.set_result(asyncio.get_running_loop())
        await self._ending.wait()

    def submit(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        """Run on the loop, without waiting."""
        return asyncio.run_coroutine_threadsafe(work, self._ready.result())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the loop and wait."""
        future = self.submit(work)
        try:
            while not concurrent.futures.wait((future,), timeout=_SLICE_SECONDS).done:
                pass
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def end(self) -> None:
        """Cancel what still runs, and end the thread."""
        self._ready.result().call_soon_threadsafe(self._ending.set)
        self._thread.join(_END_SECONDS)
        if self._thread.is_alive():
            raise SkyrocketError(f"{self._thread.name}: the event loop did not end within {_END_SECONDS:g} s")


# Who uses these has `_run(work)`, which runs `work(asyncio object)` on the loop and waits.


def constructs(kind: Callable[P, T]) -> Callable[[Callable[[Any], None]], Callable[Concatenate[Any, P], None]]:
    """A constructor that takes what that of an asyncio class takes, and makes the `_inner` object.

    A decorator, because type checkers look for a constructor that is declared.
    """

    def decorate(_: Callable[[Any], None]) -> Callable[Concatenate[Any, P], None]:
        @functools.wraps(kind.__init__)
        def construct(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> None:
            self._inner = kind(*args, **kwargs)

        return construct

    return decorate


def waits(method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """A coroutine method as one that waits."""

    @functools.wraps(method)
    def waiting(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._run(lambda inner: method(inner, *args, **kwargs))
        return result

    return waiting


def calls(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[Any, P], T]:
    """A plain method, called on the loop's thread."""

    @functools.wraps(method)
    def calling(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def call(inner: S) -> T:
            return method(inner, *args, **kwargs)

        result: T = self._run(call)
        return result

    return calling
