"""What waits for an event and a time in a loop ends when it is cancelled, even in the turn that wakes it.

Python 3.11's `asyncio.wait_for` forgets such a cancellation (3.12 does not): the loop went on, and its owner waited.
"""

import ast
import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import pytest

import skyrocket
from skyrocket.broker.acting.feature import ActingFeature
from skyrocket.broker.registration.registration import Registration
from skyrocket.client.consumer.fetched_answers import FetchedAnswers
from skyrocket.client.tracing.trace_dispatcher import TraceDispatcher
from skyrocket.console.live.gate import Gate

Waiting = tuple[Coroutine[Any, Any, Any], Callable[[], None]]  # what waits, and what wakes it


class _Anything:
    """Stands for parts that a loop does not ask while it waits."""

    is_looking = False

    def on_change(self, _: object) -> None: ...

    def on_ask(self, _: object) -> None: ...


async def _nothing() -> None: ...


def registration() -> Waiting:
    anything = cast(Any, _Anything())
    made = Registration(anything, [], anything, anything, anything)
    return made.run(), lambda: made.permission_changed(6)


def acting() -> Waiting:
    made = ActingFeature.__new__(ActingFeature)
    made._wake = asyncio.Event()
    made._look_seconds = 60.0
    vars(made)["look"] = _nothing
    return made.run_looks(), made._wake.set


def tracing() -> Waiting:
    made = TraceDispatcher.__new__(TraceDispatcher)
    made._wake = asyncio.Event()
    made._is_closing = False
    vars(made)["_flush"] = _nothing
    return made._run(), made._wake.set


def fetched() -> Waiting:
    made = FetchedAnswers()

    async def poll() -> None:
        while True:
            await made.wait(60)

    return poll(), made.wake


def live_page() -> Waiting:
    made = Gate()

    async def stream() -> None:
        await made.admit("::1").pause(60)
        await asyncio.sleep(60)  # what it does next

    return stream(), made.closing.set


@pytest.mark.parametrize("made", [registration, acting, tracing, fetched, live_page])
async def test_it_ends_also_when_it_is_woken_and_cancelled_in_one_turn(made: Callable[[], Waiting]) -> None:
    work, wake = made()
    task = asyncio.create_task(work)
    for _ in range(10):  # until it waits
        await asyncio.sleep(0)
    wake()
    await asyncio.sleep(0)  # what waited for the event is done now, and its own task has not run yet
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=5)
    task.cancel()
    assert done, "the cancellation was lost"
    assert task.cancelled()


def test_no_loop_without_end_waits_with_wait_for() -> None:
    root = Path(skyrocket.__file__).parent
    found = [
        f"{path.relative_to(root)}:{call.lineno}"
        for path in sorted(root.rglob("*.py"))
        if "asyncio.wait_for(" in (text := path.read_text())
        for loop in ast.walk(ast.parse(text))
        if isinstance(loop, ast.While)
        for call in ast.walk(loop)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "asyncio.wait_for"
    ]
    assert not found
