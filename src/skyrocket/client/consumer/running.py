"""Consumers as a program of their own: signals, the wait, and an end in order.

SIGTERM, SIGINT ─▶ pull no more ─▶ running handlers end, at most `drain` seconds ─▶ offsets are saved ─▶ goodbye

What was fetched but not begun is left for others; it was not committed, so nothing is lost and nothing of it repeated.
"""

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

from skyrocket.client.core.errors import WrongUse
from skyrocket.remoting.event_loop import run

_logger = logging.getLogger(__name__)

EXIT_AT_ONCE: Final = 1


class Runnable(Protocol):
    """A push consumer."""

    def prepare_to_run(self, drain: float | None = None) -> None: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def wait_stopped(self) -> None: ...


def run_consumers(consumers: Sequence[Runnable], drain: float | None = None) -> None:
    """Until a signal comes, or all were stopped otherwise; raises what a start raises."""
    if threading.current_thread() is not threading.main_thread():
        raise WrongUse(
            "run() hears signals, so it must be called in the main thread: elsewhere use `async with consumer`"
        )
    for consumer in consumers:
        consumer.prepare_to_run(drain)
    run(_until_signalled(consumers))


async def _until_signalled(consumers: Sequence[Runnable]) -> None:
    stopping = stop_on_signals()
    async with running(consumers):
        waits = [asyncio.ensure_future(stopping.wait()), asyncio.ensure_future(_all_stopped(consumers))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)


async def _all_stopped(consumers: Sequence[Runnable]) -> None:
    await asyncio.gather(*(consumer.wait_stopped() for consumer in consumers))


@contextlib.asynccontextmanager
async def running(consumers: Sequence[Runnable]) -> AsyncIterator[None]:
    """All started, and stopped together: one that takes its time does not keep the others at work."""
    started: list[Runnable] = []
    try:
        for consumer in consumers:
            await consumer.start()
            started.append(consumer)
        yield
    finally:
        ended = await asyncio.gather(*(consumer.stop() for consumer in started), return_exceptions=True)
        for consumer, error in zip(started, ended, strict=True):
            if isinstance(error, Exception):
                _logger.error("%s did not stop in order", consumer, exc_info=error)


def stop_on_signals() -> asyncio.Event:
    """Set by SIGTERM or SIGINT; a second one does not wait for anything."""
    stopping = asyncio.Event()

    def stop() -> None:
        if stopping.is_set():
            os._exit(EXIT_AT_ONCE)
        _logger.info("stopping: running handlers may end")
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    return stopping
