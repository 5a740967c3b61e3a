"""`skyrocket worker`: run the consumers of an application until it is told to stop."""

import logging
import os
from pathlib import Path
from typing import Annotated

import typer

from skyrocket.cli.program.cluster import client_failures_shown
from skyrocket.cli.program.moments import seconds_of
from skyrocket.cli.program.options import panel
from skyrocket.errors import ConfigError
from skyrocket.remoting.event_loop import run

_running = panel("Running")
_watching = panel("Watching")


def worker(
    application: Annotated[str, typer.Argument(help="module:name of a PushConsumer, a list of them, or a function.")],
    namesrv: Annotated[
        str | None,
        _running(
            "-n",
            "--namesrv",
            help="Name servers for consumers that name none ($NAMESRV_ADDR).",
            show_default=False,
        ),
    ] = None,
    processes: Annotated[int, _running("-p", "--processes", min=1, max=256, help="Processes, each a member.")] = 1,
    concurrency: Annotated[
        int | None,
        _running("--concurrency", min=1, max=1000, help="Handlers at once in each process.", show_default=False),
    ] = None,
    drain: Annotated[
        str, _running("--drain", help="How long running handlers may take after SIGTERM: 30s, 5m.")
    ] = "30s",
    app_dir: Annotated[Path, _running("--app-dir", help="Where the module is looked for.")] = Path(),
    reload: Annotated[
        bool, _running("--reload", help="Start anew when a Python file below --app-dir changes.")
    ] = False,
    port: Annotated[
        int | None,
        _watching(
            "--port",
            min=0,
            max=65535,
            help="/health, /ready and /metrics; with several processes the next ports too.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[str, _watching("--host", help="Where that port listens.")] = "127.0.0.1",
    json_logs: Annotated[bool, _watching("--json-logs", help="Log one JSON object per line.")] = False,
    verbose: Annotated[bool, _watching("-v", "--verbose", help="Log what happens, not only what is wrong.")] = False,
    process_number: Annotated[int | None, typer.Option("--process-number", hidden=True)] = None,
) -> None:
    """Run the consumers of an application: SIGTERM lets running handlers end, saves how far they came and leaves.

    Exit code 0: stopped by a signal, 1: it failed, 2: wrong usage.
    """
    from skyrocket.cli.workers.logs import set_up
    from skyrocket.cli.workers.serving import WorkerPlan, serve

    with client_failures_shown("worker", verbose):
        set_up(as_json=json_logs, level=logging.INFO if verbose else logging.WARNING)
        if namesrv is not None:
            os.environ["NAMESRV_ADDR"] = namesrv
        seconds, folder = seconds_of(drain), app_dir.resolve()
        if not folder.is_dir():
            raise ConfigError(f"--app-dir {app_dir} is no folder: give the one that has the module")
        if process_number is None and (processes > 1 or reload):
            options = [f"--drain={seconds:g}", f"--app-dir={folder}", f"--host={host}"]
            options += [] if concurrency is None else [f"--concurrency={concurrency}"]
            options += [] if port is None else [f"--port={port}"]
            options += ["--json-logs"] * json_logs + ["--verbose"] * verbose
            raise typer.Exit(_keep([application, *options], processes, seconds, folder if reload else None))
        plan = WorkerPlan(
            application, folder, seconds, concurrency, host, port, process_number or 0, process_number is not None
        )
        run(serve(plan))


def _keep(arguments: list[str], processes: int, drain_seconds: float, watched: Path | None) -> int:
    from skyrocket.cli.workers.changes import Changes
    from skyrocket.cli.workers.processes import keep

    return run(keep(arguments, processes, drain_seconds, None if watched is None else Changes(watched)))
