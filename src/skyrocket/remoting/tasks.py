"""Tasks with an owner: none is forgotten, and none outlives its owner."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, Final, TypeVar

T = TypeVar("T")

_CANCEL_AGAIN_SECONDS: Final = 3.0  # longer than what a task does at its end, which must not be cut off


class TaskSet:
    """The tasks of one owner. What they raise is theirs to handle: only cancellation may come out of them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
        """Let work run beside the caller's."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settle(self, seconds: float) -> None:
        """Let them finish for a while."""
        if self._tasks and seconds > 0:
            await asyncio.wait(self._tasks, timeout=seconds)

    async def drain(self, seconds: float) -> None:
        """Let them finish for a while, then cancel those that have not."""
        await self.settle(seconds)
        await self.cancel()

    async def cancel(self) -> None:
        """End them all."""
        await cancel_all(self._tasks)


async def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for their end, whatever they raise.

    They are cancelled again after a while: Python 3.11's `wait_for` loses a cancellation when what it waits for comes
    in the same turn of the loop, and a function of the application may swallow one.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        done, left = await asyncio.wait(left, timeout=_CANCEL_AGAIN_SECONDS)
        for task in done:
            if not task.cancelled():
                task.exception()  # looked at, or Python would complain about it
