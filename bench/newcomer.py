"""How long a newcomer waits: `python -m bench.newcomer [COMMIT …]`, by default for the commit that is checked out.

For each commit: a clean clone, `make run` until the server says that it is ready, one message sent and read in the
terminal, then the size of what was installed. pip's cache is not used, so everything is fetched. "Longest silence" is
the longest time in which nothing was printed: a newcomer who sees nothing believes that it hangs.
"""

import argparse
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
READY = re.compile(r"Skyrocket is ready\. namesrv=\S*:(?P<port>\d+) ")
PATIENCE_SECONDS = 900


class NoServer(Exception):
    """`make run` ended, or was not ready in time; the text is what it printed last."""


@dataclass(frozen=True)
class Waits:
    """What a newcomer met, in seconds and megabytes."""

    ready: float
    first_message: float
    longest_silence: float
    lines: int
    installed_mb: float

    def row(self) -> list[str]:
        """As cells of the table, in the order of the fields."""
        return [
            f"{self.ready:.0f} s",
            f"{self.first_message:.0f} s",
            f"{self.longest_silence:.0f} s",
            f"{self.lines}",
            f"{self.installed_mb:,.0f} MB",
        ]


class Output:
    """What a program prints, with the times of its lines; read by a thread that ends with the program."""

    def __init__(self, stream: Iterable[str], began_at: float) -> None:
        self.lines: list[str] = []
        self.times: list[float] = [began_at]
        self.port = 0
        self.ready = threading.Event()  # also set at the end: then there is no port
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: Iterable[str]) -> None:
        for line in stream:
            self.times.append(time.monotonic())
            self.lines.append(line.rstrip())
            if found := READY.match(line):
                self.port = int(found["port"])
                self.ready.set()
        self.ready.set()


def longest_silence(times: Sequence[float]) -> float:
    """The longest of the pauses between these moments."""
    return max((later - earlier for earlier, later in itertools.pairwise(times)), default=0.0)


def measure(commit: str, folder: Path) -> Waits:
    """Clone, run, send, read, stop; raises NoServer."""
    clone = folder / "skyrocket"
    began_at = time.monotonic()
    subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "checkout", "--quiet", commit], cwd=clone, check=True)
    environment = {**os.environ, "PIP_NO_CACHE_DIR": "1", "PYTHONUNBUFFERED": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a newcomer's Python keeps what it compiled
    environment.pop("VIRTUAL_ENV", None)
    ports = "--namesrv-port 0 --listen-port 0 --set bindAddress=127.0.0.1"
    command = ["make", "run", f"STORE={folder / 'store'}", f"ARGS={ports}"]
    server = subprocess.Popen(
        command,
        cwd=clone,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert server.stdout is not None
    try:
        output = Output(server.stdout, began_at)
        output.ready.wait(PATIENCE_SECONDS)
        ready_at = time.monotonic()
        if not output.port:
            raise NoServer("\n".join(output.lines[-15:]) or f"nothing was printed in {PATIENCE_SECONDS} s")
        seen, times = len(output.lines), [*output.times]
        _first_message(clone, output.port, environment)
        message_at = time.monotonic()
    finally:
        _stop(server)
    installed = sum(path.lstat().st_size for path in (clone / ".venv").rglob("*") if not path.is_dir()) / 1e6
    return Waits(ready_at - began_at, message_at - began_at, longest_silence(times), seen, installed)


def _first_message(clone: Path, port: int, environment: dict[str, str]) -> None:
    program = str(clone / ".venv" / "bin" / "skyrocket")
    where = ["-n", f"127.0.0.1:{port}"]
    for words in (["produce", "Newcomer", "hello", *where], ["consume", "Newcomer", *where]):
        done = subprocess.run(
            [program, *words], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode:
            raise NoServer(f"skyrocket {' '.join(words)}: {done.stderr.strip()}")
    if "hello" not in done.stdout:
        raise NoServer(f"the message was not read: {done.stdout!r}")


def _stop(server: "subprocess.Popen[str]") -> None:
    """make and what it started, together."""
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGINT)
    try:
        server.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def table(found: dict[str, Waits | NoServer]) -> Table:
    """A column per commit, so that before and after stand side by side."""
    result = Table(title=f"A newcomer's waiting, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    result.add_column("from a clean clone to …")
    for commit in found:
        result.add_column(commit, justify="right")
    names = ("ready", "first message sent and read", "longest silence", "lines printed until ready", "installed")
    rows = [each.row() if isinstance(each, Waits) else ["failed"] * len(fields(Waits)) for each in found.values()]
    for number, name in enumerate(names):
        result.add_row(name, *(row[number] for row in rows))
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when a commit did not come to its first message."""
    parser = argparse.ArgumentParser(prog="python -m bench.newcomer", description=__doc__)
    parser.add_argument("commits", nargs="*", metavar="COMMIT", default=["HEAD"], help="commits or branches")
    options = parser.parse_args(arguments)

    found: dict[str, Waits | NoServer] = {}
    for name in options.commits:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", name], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
        folder = Path(tempfile.mkdtemp(prefix="skyrocket-newcomer-"))
        print(f"{commit}: cloning and running …", file=sys.stderr)
        try:
            found[commit] = measure(commit, folder)
        except NoServer as trouble:
            found[commit] = trouble
            print(f"{commit}: {trouble}", file=sys.stderr)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    Console().print(table(found))
    return int(any(isinstance(each, NoServer) for each in found.values()))


if __name__ == "__main__":
    sys.exit(main())
