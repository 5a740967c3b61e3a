"""Answers that many askers share: however many browsers are open, the cluster is asked once."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from skyrocket.clock import Clock

K = TypeVar("K")
T = TypeVar("T")


class SharedAnswer(Generic[T]):
    """One question. It is asked again when the answer is older than `seconds`; who comes meanwhile waits for it too."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, T]], seconds: float, clock: Clock) -> None:
        self._ask = ask
        self._seconds = seconds
        self._clock = clock
        self._asking: asyncio.Task[T] | None = None
        self._asked_at = float("-inf")
        self._open: set[asyncio.Task[T]] = set()

    async def get(self) -> T:
        """The answer; raises what asking raised, also for those who waited with it."""
        task = self._asking
        if task is None or (task.done() and self._clock.monotonic() - self._asked_at >= self._seconds):
            self._asked_at = self._clock.monotonic()
            task = self._asking = asyncio.create_task(self._ask())
            self._open.add(task)
            task.add_done_callback(self._seen)
        return await asyncio.shield(task)  # one browser that leaves does not take the answer from the others

    def forget(self) -> None:
        """Ask anew for the next one: something was changed."""
        self._asking = None  # one that is under way may have been answered before the change

    async def end(self) -> None:
        """Stop asking."""
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _seen(self, task: asyncio.Task[T]) -> None:
        self._open.discard(task)
        if not task.cancelled():
            task.exception()  # those who wait for it get it; with nobody there it is no news


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

    def forget(self) -> None:
        """Ask anew for all."""
        for answer in self._answers.values():
            answer.forget()

    async def end(self) -> None:
        """Stop asking."""
        for answer in self._answers.values():
            await answer.end()


async def each(keys: "list[K]", ask: Callable[[K], Awaitable[T]], at_once: int = 16) -> dict[K, T]:
    """Answers for several keys, a few at a time."""
    turn = asyncio.Semaphore(at_once)

    async def one(key: K) -> T:
        async with turn:
            return await ask(key)

    return dict(zip(keys, await asyncio.gather(*(one(key) for key in keys)), strict=True))
