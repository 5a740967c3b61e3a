"""Waiting for what happens soon in another task, thread or process; it fails with the words of what did not happen."""

import asyncio
import inspect
import time
from collections.abc import Callable, Iterator

SECONDS = 60.0


async def until(condition: Callable[[], object], what: str = "", *, seconds: float = SECONDS) -> None:
    """Let other tasks run until the condition is true."""
    for pause_seconds in _pauses(condition, what, seconds):
        await asyncio.sleep(pause_seconds)


def wait_until(condition: Callable[[], object], what: str = "", *, seconds: float = SECONDS) -> None:
    """Let other threads and processes run until the condition is true."""
    for pause_seconds in _pauses(condition, what, seconds):
        time.sleep(pause_seconds)


def _pauses(condition: Callable[[], object], what: str, seconds: float) -> Iterator[float]:
    """Short at first, then a tenth of what was waited: conditions may be costly."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < seconds, f"not within {seconds:.0f} s: {what or _words_of(condition)}"
        yield min(max(0.002, waited / 10), 0.1)


def _words_of(condition: Callable[[], object]) -> str:
    """The lines that say the condition, and what it looks at."""
    if not inspect.isfunction(condition):
        return repr(condition)
    looked_at = "".join(
        f"\n  {name} = {value!r}" for name, value in inspect.getclosurevars(condition).nonlocals.items()
    )
    try:
        return inspect.getsource(condition).strip() + looked_at
    except OSError:
        return condition.__qualname__ + looked_at
