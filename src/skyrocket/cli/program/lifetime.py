"""From the start of a program to its end: failures shown with their exit code, signals, the wait in between."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import threading
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, Final, NoReturn, TypeVar

import typer

from skyrocket.cli.output.text import visible_lines
from skyrocket.cli.program.systemd import tell_systemd
from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.observability.logs import LogSettings

T = TypeVar("T")

EXIT_PROBLEMS = 1
EXIT_USAGE = 2

_SERVERS: Final = ("broker", "namesrv", "controller", "standalone", "console")
_SERVER_LIBRARIES: Final = ("numpy", "yaml", "zstandard")
_STANDARD_INPUT: Final = 0
_COLLECT_AFTER: Final = 50_000  # allocations
_STOP_SECONDS_WITHOUT_PARENT: Final = 30.0


@contextlib.contextmanager
def failures_shown(command: str, verbose: bool, log: Sequence[str] | None = None) -> Iterator[None]:
    """Say what went wrong and leave with 2 for wrong usage, with 1 for everything else. `log`: a server's --log."""
    try:
        _set_up_logs(command, log or (), verbose=verbose)
        yield
    except SkyrocketError as error:
        typer.echo(visible_lines(f"skyrocket {command}: {error}"), err=True)
        raise typer.Exit(EXIT_USAGE if isinstance(error, ConfigError) else EXIT_PROBLEMS) from error
    except ModuleNotFoundError as error:
        if error.name not in _SERVER_LIBRARIES:
            raise
        typer.echo(f"skyrocket {command} needs {error.name}: pip install 'skyrocket[server]'", err=True)
        raise typer.Exit(EXIT_USAGE) from error


def _set_up_logs(command: str, log: Sequence[str], *, verbose: bool) -> None:
    """Servers as options and environment say; commands in a terminal write to it, whatever is said for servers."""
    wanted = LogSettings.of(os.environ, log) if command in _SERVERS else LogSettings()
    handlers = [wanted.handler()] if not logging.getLogger().handlers else []  # else basicConfig does nothing
    logging.basicConfig(level="INFO" if verbose else wanted.level, handlers=handlers)


def stop_on_signals() -> asyncio.Event:
    """Set by SIGTERM or SIGINT; a second one does not wait for anything."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _stop_or_leave, stopping)
    return stopping


def _stop_or_leave(stopping: asyncio.Event) -> None:
    if stopping.is_set():
        os._exit(EXIT_PROBLEMS)
    stopping.set()


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Within it SIGTERM ends a command as Ctrl-C does, which lets it keep and say how far it is."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, signal.raise_signal, signal.SIGINT)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def stop_with_parent() -> None:
    """Stop as after SIGTERM when standard input ends: its other end dies with the parent, however that died.

    A thread watches, so that a busy event loop does not matter; a stop that hangs is cut short.
    """
    threading.Thread(target=_watch_parent, name="parent-watch", daemon=True).start()


def _watch_parent() -> NoReturn:
    with contextlib.suppress(OSError):
        while os.read(_STANDARD_INPUT, 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(_STOP_SECONDS_WITHOUT_PARENT)
    os._exit(EXIT_PROBLEMS)


async def unless_stopped(work: Coroutine[Any, Any, T], stopping: asyncio.Event) -> T | None:
    """What the work gives; None when the signal comes before it is done, and the work is cancelled then."""
    working, signalled = asyncio.ensure_future(work), asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((working, signalled), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, signalled):
            task.cancel()
        await asyncio.gather(working, signalled, return_exceptions=True)


def spare_the_collector() -> None:
    """Let the garbage collector leave alone what was built at the start, and look less often.

    A server makes thousands of short-lived objects in a turn, hardly any of them in cycles; walking through all modules
    and tables every few hundred allocations costs a tenth of its time and tens of milliseconds at the worst moment.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 100)


async def until_stopped(stopping: asyncio.Event, *failures: Coroutine[Any, Any, NoReturn]) -> None:
    """All is started: wait for the signal; raises what one of the failures raises before it."""
    spare_the_collector()
    tell_systemd("READY=1")
    waits = [asyncio.ensure_future(stopping.wait()), *map(asyncio.ensure_future, failures)]
    try:
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in done:
            wait.result()
    finally:
        tell_systemd("STOPPING=1")
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
