"""Coroutines run to their end: every `async def test_…` (tests/conftest.py), and what fixtures and examples await."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from skyrocket.remoting.event_loop import loop_factory

T = TypeVar("T")
LoopFactory = Callable[[], asyncio.AbstractEventLoop]
SECONDS = 100.0


def run_bounded(main: Coroutine[Any, Any, T], seconds: float = SECONDS) -> T:
    """Run on the loop that servers have, but not for ever; no task may be left behind."""
    return run_on(loop_factory(), main, seconds)


def run_on(factory: LoopFactory | None, main: Coroutine[Any, Any, T], seconds: float) -> T:
    """Run on a loop of this kind; None is asyncio's own."""

    async def watched() -> T:
        result = await asyncio.wait_for(main, seconds)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"
        return result

    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(watched())
