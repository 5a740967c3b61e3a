"""Answers that many askers share: however many browsers are open, the cluster is asked once."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, Final, Generic, TypeVar

from skyrocket.clock import Clock

K = TypeVar("K")
T = TypeVar("T")

_PATIENCE_SECONDS: Final = 0.3  # a page shows what was known before rather than nothing for longer than this
_OLDEST_SECONDS: Final = 90.0  # the recorder asks each minute
_REST: Final = 10  # an answer that takes a second to make is asked for every ten
_LONGEST_REST_SECONDS: Final = 15.0


class SharedAnswer(Generic[T]):
    """One question. It is asked again when the answer is older than `seconds`; who comes meanwhile waits for it too.

    A large cluster answers slowly: then who asks gets the answer before, and the next look has the new one.
    """

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, T]], seconds: float, clock: Clock) -> None:
        self._ask = ask
        self._seconds = seconds
        self._clock = clock
        self._asking: asyncio.Task[T] | None = None
        self._asked_at = float("-inf")
        self._took = 0.0
        self._known: tuple[float, T] | None = None  # when it was asked for, and the answer
        self._open: set[asyncio.Task[T]] = set()

    @property
    def latest(self) -> T | None:
        """The last answer, however old; None before the first."""
        return None if self._known is None else self._known[1]

    async def get(self, *, fresh: bool = False, within: float = 0.0) -> T:
        """The answer; raises what asking raised, also for those who waited with it.

        `fresh`: none from before; `within`: one that is not older than so many seconds will do.
        """
        task, now = self._asking, self._clock.monotonic()
        if self._known is not None and now - self._known[0] < within:
            return self._known[1]
        rest = max(self._seconds, min(_REST * self._took, _LONGEST_REST_SECONDS))
        if task is None or (task.done() and now - self._asked_at >= rest):
            self._asked_at = now
            task = self._asking = asyncio.create_task(self._ask())
            self._open.add(task)
            task.add_done_callback(self._seen)
        before = self._known
        if before is not None and not fresh and not task.done() and now - before[0] < _OLDEST_SECONDS:
            await asyncio.wait({task}, timeout=_PATIENCE_SECONDS)
            if not task.done():
                return before[1]
        return await asyncio.shield(task)  # one browser that leaves does not take the answer from the others

    def forget(self) -> None:
        """Ask anew for the next one: something was changed."""
        self._asking = None  # one that is under way may have been answered before the change
        self._known = None

    async def end(self) -> None:
        """Stop asking."""
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _seen(self, task: asyncio.Task[T]) -> None:
        self._open.discard(task)
        if task.cancelled() or task.exception() is not None:  # those who wait get it; with nobody there it is no news
            return
        if task is self._asking:
            self._took = self._clock.monotonic() - self._asked_at
            self._known = (self._asked_at, task.result())


class SharedAnswers(Generic[K, T]):
    """The same question about many things: the `most` that were asked for last are kept."""

    def __init__(self, ask: Callable[[K], Coroutine[Any, Any, T]], seconds: float, most: int, clock: Clock) -> None:
        self._ask = ask
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._answers: OrderedDict[K, SharedAnswer[T]] = OrderedDict()

    async def get(self, key: K) -> T:
        """The answer about one of them."""
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = SharedAnswer(lambda: self._ask(key), self._seconds, self._clock)
            if len(self._answers) > self._most:
                self._answers.popitem(last=False)
        self._answers.move_to_end(key)
        return await answer.get()

    def latest(self, key: K) -> T | None:
        """The last answer about one of them, however old; None if there is none."""
        answer = self._answers.get(key)
        return None if answer is None else answer.latest

    def forget(self) -> None:
        """Ask anew for all."""
        for answer in self._answers.values():
            answer.forget()

    async def end(self) -> None:
        """Stop asking."""
        for answer in self._answers.values():
            await answer.end()
