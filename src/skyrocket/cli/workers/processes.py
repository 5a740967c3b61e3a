"""Several processes of one worker: all started, a dead one started again, all stopped together; anew when files change.

start all ─▶ keep: one died ─▶ pause ─▶ start ─▶ …
             one ended with 2 (wrong usage): stop all and end with 2
             --reload, a file changed: stop and start all
"""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Sequence
from typing import Any, Final

import typer

from skyrocket.cli.fleet.restarts import Restarts
from skyrocket.cli.program.lifetime import EXIT_USAGE, stop_on_signals
from skyrocket.cli.workers.changes import Changes

_KILL_AFTER_SECONDS: Final = 10.0  # behind the time that handlers have to end
_LOOK_SECONDS: Final = 0.5


class _Child:
    """One process; its standard input is a pipe that ends with the parent."""

    def __init__(self, number: int, arguments: Sequence[str], stop_seconds: float) -> None:
        self.number = number
        self._arguments = arguments
        self._stop_seconds = stop_seconds
        self._restarts = Restarts()
        self._process: asyncio.subprocess.Process | None = None
        self._started_at = 0.0

    async def start(self) -> None:
        self._started_at = asyncio.get_running_loop().time()
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "skyrocket", "worker", *self._arguments, "--process-number", str(self.number)),
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in a terminal is for the parent, which stops all in order
        )

    async def ended(self) -> int:
        assert self._process is not None
        return await self._process.wait()

    def pause(self) -> float:
        now = asyncio.get_running_loop().time()
        return self._restarts.pause_after(now, now - self._started_at).seconds

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL for one that does not end in time."""
        process = self._process
        if process is None:
            return
        _signal(process, signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), self._stop_seconds)
        except TimeoutError:
            typer.echo(f"worker {self.number} does not stop within {self._stop_seconds:g} s and is killed", err=True)
            _signal(process, signal.SIGKILL)
            await process.wait()
        if process.stdin is not None:
            process.stdin.close()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        if process.returncode is None:
            process.send_signal(number)


async def keep(arguments: Sequence[str], count: int, drain_seconds: float, changes: Changes | None) -> int:
    """Run so many processes until a signal comes; the exit code."""
    stopping = stop_on_signals()
    children = [_Child(number, arguments, drain_seconds + _KILL_AFTER_SECONDS) for number in range(count)]
    while not stopping.is_set():
        keepers = [asyncio.create_task(_keep_one(child, stopping), name=f"worker {child.number}") for child in children]
        others: list[asyncio.Task[Any]] = [asyncio.create_task(stopping.wait())]
        if changes is not None:
            others.append(asyncio.create_task(_changed(changes)))
        try:
            await asyncio.wait([*keepers, *others], return_when=asyncio.FIRST_COMPLETED)
            refused = [keeper for keeper in keepers if keeper.done() and not keeper.cancelled()]
            if refused and changes is not None:
                typer.echo("the application cannot be started; it is tried again when a file changes", err=True)
                await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*keepers, *others):
                task.cancel()
            await asyncio.gather(*keepers, *others, return_exceptions=True)
            await asyncio.gather(*(child.stop() for child in children))
        if refused and changes is None:
            return EXIT_USAGE
    return 0


async def _keep_one(child: _Child, stopping: asyncio.Event) -> None:
    """Start it again whenever it ends; returns only when it cannot be started as it was called."""
    while True:
        await child.start()
        code = await child.ended()
        if code == EXIT_USAGE:
            return
        pause = child.pause()
        if not stopping.is_set():
            how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            typer.echo(f"worker {child.number} ended {how}; it is started again in {pause:.1f} s", err=True)
        await asyncio.sleep(pause)


async def _changed(changes: Changes) -> None:
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        found = await asyncio.to_thread(changes.found)
        if found:
            typer.echo(f"{found[0]} has changed: the worker is started anew", err=True)
            return
