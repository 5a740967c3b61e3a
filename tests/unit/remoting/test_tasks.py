"""Tasks with an owner end with it, also those that lose a cancellation on the way."""

import asyncio

from skyrocket.remoting.tasks import TaskSet


async def test_a_task_that_swallows_a_cancellation_is_cancelled_again() -> None:
    tasks, swallowed = TaskSet(), 0

    async def stubborn() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if swallowed:
                    raise
                swallowed += 1

    task = tasks.start(stubborn())
    await asyncio.sleep(0)
    await tasks.cancel()
    assert (swallowed, task.cancelled(), len(tasks)) == (1, True, 0)


async def test_what_a_cancelled_task_raises_is_nobodys_trouble() -> None:
    tasks = TaskSet()

    async def failing() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("at the end")

    tasks.start(failing())
    await asyncio.sleep(0)
    await tasks.cancel()
    assert len(tasks) == 0
