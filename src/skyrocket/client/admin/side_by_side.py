"""The same question about several things, a few at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


async def each(keys: Iterable[K], ask: Callable[[K], Awaitable[T]], at_once: int = 16) -> dict[K, T]:
    """Answers by key, in the order of the keys; the first failure is raised."""
    turn = asyncio.Semaphore(at_once)
    keys = list(keys)

    async def one(key: K) -> T:
        async with turn:
            return await ask(key)

    return dict(zip(keys, await asyncio.gather(*(one(key) for key in keys)), strict=True))
