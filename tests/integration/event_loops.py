"""The event loop of servers, for tests."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from skyrocket.remoting.event_loop import loop_factory

T = TypeVar("T")


def run_bounded(main: Coroutine[Any, Any, T], seconds: float = 100.0) -> T:
    """Run to the end, but not for ever."""

    async def bounded() -> T:
        return await asyncio.wait_for(main, seconds)

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(bounded())
