"""`skyrocket demo`: a server, a shop that sends orders, and the pipeline that makes revenue per minute of them."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from skyrocket.cli.pipeline.running import job_failures_shown
from skyrocket.cli.program.options import VerboseOption
from skyrocket.clock import SystemClock
from skyrocket.errors import SkyrocketError
from skyrocket.model.words import counted

if TYPE_CHECKING:
    from skyrocket.client import ReceivedMessage
    from skyrocket.pipeline.demo.page import Minute

_ORDERS_PER_MINUTE: Final = 100  # of the orders' own time, which runs faster than ours
_TOPIC: Final = "orders"
_RESULTS: Final = "revenue_per_minute"
_PATIENCE_SECONDS: Final = 600.0  # for the first result: Spark starts slowly
_STOP_SECONDS: Final = 180.0  # the pipeline has a minute for its batches, and Spark is slow to leave as well
_LOOK_SECONDS: Final = 0.5
_KEPT_PAGES: Final = 20
_PIPELINE: Final = ("revenue: ", "revenue runs: ")  # how its lines about phases begin


class DemoFailed(SkyrocketError):
    """One of its parts did not start, or has ended."""


def demo(
    seconds: Annotated[
        float | None, typer.Option(help="End this many seconds after the first result; else with Ctrl-C.", min=0)
    ] = None,
    rate: Annotated[float, typer.Option(help="Orders per second; a hundred of them are a minute.", min=1)] = 200.0,
    out: Annotated[Path | None, typer.Option("--out", help="Keep store, lake and page here.", file_okay=False)] = None,
    verbose: VerboseOption = False,
) -> None:
    """Start a server, a producer of orders and the pipeline that makes revenue per minute of them; shows the plot.

    Exit code 0: ended by --seconds, SIGTERM or Ctrl-C; 1: a part of it failed.
    """
    with job_failures_shown("demo", verbose), contextlib.ExitStack() as stack:
        directory = out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="skyrocket-demo-")))
        directory.mkdir(parents=True, exist_ok=True)
        stopping = _stopped_by_signals()
        show = Show(_page_path(out), directory / "pipeline.log", stack)
        address = stack.enter_context(_server(directory))
        show.say(f"the server runs, name server {address}")
        stack.callback(show.finish)  # when all results have come, and nobody sends any more
        stack.enter_context(_results(address, show))
        pipeline = stack.enter_context(_pipeline(directory, address))
        stack.enter_context(_shop(address, rate, show))
        _watch(show, pipeline, stopping, seconds)


def _page_path(out: Path | None) -> Path:
    """The page stays when the demo has ended, wherever the rest was."""
    from skyrocket.pipeline.java import cache_directory

    if out is not None:
        return out / "revenue.html"
    folder = cache_directory() / "demo"
    folder.mkdir(exist_ok=True)
    for old in sorted(folder.glob("revenue-*.html"))[:-_KEPT_PAGES]:
        old.unlink(missing_ok=True)
    return folder / f"revenue-{datetime.now(UTC):%Y%m%d-%H%M%S}.html"


class Show:
    """What is seen: a table on the terminal, or lines where there is none; and a page for the browser."""

    def __init__(self, page: Path, log: Path, stack: contextlib.ExitStack, console: Console | None = None) -> None:
        self.page = page
        self.sent = 0
        self.failure: SkyrocketError | None = None  # of the shop
        self.minutes: dict[str, Minute] = {}
        self._log = log
        self._said = 0  # lines of the pipeline's log
        self._phase = "the server starts"
        self._printed: set[str] = set()
        self._drawn = -1
        self._console = console or Console()
        self._console.print(f"The page with the plot: {page}", soft_wrap=True)
        self._live = stack.enter_context(Live(console=self._console)) if self._console.is_terminal else None

    def add(self, minute: "Minute") -> None:
        self.minutes[minute.minute] = minute

    def say(self, phase: str) -> None:
        """What goes on while there is no result."""
        self._phase = phase
        if self._live is None:
            self._console.print(f"· {phase}", soft_wrap=True, highlight=False)

    def draw(self) -> None:
        """Page and table, when there is something new; without a terminal a line for each minute, once."""
        minutes = sorted(self.minutes.values())
        if not minutes:
            self._follow_pipeline()
        if self._live is not None:
            self._live.update(self._table() if minutes else self._waiting())
        if len(minutes) == self._drawn:
            return
        self._write_page(minutes, is_last=False)
        if self._live is None:
            # A minute may come after a later one: what was printed is remembered by name.
            for minute in minutes:
                if minute.minute not in self._printed:
                    self._console.print(f"{minute.minute} orders={minute.orders} revenue={minute.revenue:.2f}")
            self._printed.update(minute.minute for minute in minutes)
        self._drawn = len(minutes)

    def finish(self) -> None:
        """The last results, and where the page is."""
        from skyrocket.pipeline.report.words import counted

        self.draw()
        self._write_page(sorted(self.minutes.values()), is_last=True)
        figures = f"{counted(self.sent, 'order')} sent, {counted(len(self.minutes), 'minute')} of revenue"
        self._console.print(f"{figures}. The page stays: {self.page}", soft_wrap=True, highlight=False)

    def _write_page(self, minutes: "list[Minute]", *, is_last: bool) -> None:
        from skyrocket.pipeline.demo.page import page
        from skyrocket.pipeline.durable_files import replace_file

        # Whole: a browser may be reading it.
        replace_file(self.page, page(minutes, self.sent, loads_again=not is_last).encode())

    def _follow_pipeline(self) -> None:
        """Its own lines say how far it is: Spark starts, is ready, its queries run."""
        if not self._log.exists():
            return
        lines = self._log.read_text(errors="replace").splitlines()
        for line in lines[self._said :]:
            if line.startswith(_PIPELINE):
                self.say(line)
        self._said = len(lines)

    def _waiting(self) -> Text:
        """A table without rows would only make what is said narrow."""
        return Text(f"{self._phase.removesuffix(' …')} … {counted(self.sent, 'order')} sent. Ctrl-C ends it.")

    def _table(self) -> Table:
        table = Table("minute", "orders", "revenue", caption=f"{counted(self.sent, 'order')} sent. Ctrl-C ends it.")
        for minute in sorted(self.minutes.values())[-15:]:
            table.add_row(minute.minute, str(minute.orders), f"{minute.revenue:.2f}")
        return table


def _watch(show: Show, pipeline: "subprocess.Popen[bytes]", stopping: threading.Event, seconds: float | None) -> None:
    clock = SystemClock()
    began, first = clock.monotonic(), None
    show.draw()
    while not stopping.wait(_LOOK_SECONDS):
        show.draw()
        now = clock.monotonic()
        if show.failure is not None:
            raise DemoFailed(f"the shop cannot send: {show.failure}")
        if pipeline.poll() is not None:
            raise DemoFailed(f"the pipeline has ended with {pipeline.returncode}; its output is above")
        if first is None and show.minutes:
            first = now
        if first is None and now - began > _PATIENCE_SECONDS:
            raise DemoFailed(f"no result within {_PATIENCE_SECONDS:g} s; the pipeline's output is above")
        if first is not None and seconds is not None and now - first >= seconds:
            return


def _stopped_by_signals() -> threading.Event:
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopping.set())
    return stopping


# ── its parts ────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def _server(directory: Path) -> Iterator[str]:
    """A standalone server on free ports; gives the name server's address."""
    command = [sys.executable, "-m", "skyrocket", "standalone", "--namesrv-port", "0", "--listen-port", "0"]
    command += ["--broker-ip", "127.0.0.1", "--store", str(directory / "store")]
    command += ["--namesrv-bind", "127.0.0.1", "--set", "bindAddress=127.0.0.1"]
    # Of a session of its own: Ctrl-C on the terminal is for us, who stop the parts in their order.
    server = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    with _ended(server):
        assert server.stdout is not None
        ready = re.search(rb"namesrv=\S+:(\d+)", server.stdout.readline())
        if ready is None:
            raise DemoFailed("the server did not start; its output is above")
        address = f"127.0.0.1:{ready[1].decode()}"
        _create_topics(address)
        yield address


def _create_topics(address: str) -> None:
    from skyrocket.client import ClientSettings, blocking

    with blocking.Admin(client=ClientSettings(address)) as admin:
        for topic in (_TOPIC, _RESULTS):
            if topic not in admin.topics():
                admin.create_topic(topic)


@contextlib.contextmanager
def _pipeline(directory: Path, address: str) -> "Iterator[subprocess.Popen[bytes]]":
    file = directory / "revenue.yml"
    file.write_bytes(files("skyrocket.pipeline.demo").joinpath("revenue.yml").read_bytes())
    command = [sys.executable, "-m", "skyrocket", "pipeline", "run", str(file), "--master", "local[2]"]
    log = directory / "pipeline.log"
    environment = os.environ | {
        "NAMESRV_ADDR": address,
        "LAKE": str(directory / "lake"),
        "ORDERS_TOPIC": _TOPIC,
        "REVENUE_TOPIC": _RESULTS,
    }
    with log.open("wb") as output:
        running = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
    with _ended(running):
        try:
            yield running
        except DemoFailed:
            typer.echo(log.read_text(errors="replace")[-4000:], err=True)
            raise


@contextlib.contextmanager
def _ended(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Stop it with SIGTERM at the end; a part that hangs is killed, and that is reported."""
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            typer.echo(f"process {process.pid} did not stop within {_STOP_SECONDS:g} s and was killed", err=True)
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextlib.contextmanager
def _results(address: str, show: Show) -> Iterator[None]:
    """What the pipeline sends back, as an ordinary consumer sees it."""
    from skyrocket.client import ClientSettings, PushConsumerSettings, blocking
    from skyrocket.client.consumer.start_position import ConsumeFromWhere
    from skyrocket.pipeline.demo.page import Minute

    settings = PushConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer = blocking.PushConsumer("revenue-page", settings=settings, client=ClientSettings(address))

    @consumer.on(_RESULTS)
    def show_minute(message: "ReceivedMessage") -> None:
        show.add(Minute.of(json.loads(message.body)))

    with consumer:
        yield


@contextlib.contextmanager
def _shop(address: str, rate: float, show: Show) -> Iterator[None]:
    """Sends orders from a thread of its own, a handful at a time."""
    from skyrocket.client import ClientSettings, blocking
    from skyrocket.pipeline.demo.orders import orders

    closing = threading.Event()
    pause = 0.05

    def sell() -> None:
        try:
            send()
        except SkyrocketError as error:
            show.failure = error

    def send() -> None:
        with blocking.Producer("shop", client=ClientSettings(address)) as producer:
            stream = orders(_TOPIC, datetime(2026, 1, 31, 8, tzinfo=UTC), _ORDERS_PER_MINUTE)
            owed = 0.0
            while not closing.wait(pause):
                owed += rate * pause
                while owed >= 1:
                    producer.send(next(stream))
                    show.sent += 1
                    owed -= 1

    selling = threading.Thread(target=sell, name="shop", daemon=True)
    selling.start()
    try:
        yield
    finally:
        closing.set()
        selling.join(_STOP_SECONDS)
