"""A skyrocket program as a process of its own, on free ports: its lines as they come, its end, nothing left behind."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

SMALL_FILES = ("mappedFileSizeCommitLog=4194304", "maxHashSlotNum=1000", "maxIndexNum=4000")
START_SECONDS = 60.0


class Program:
    """`skyrocket <arguments>`; both outputs are one list of lines."""

    def __init__(
        self,
        *arguments: str,
        home: Path,
        environment: Mapping[str, str] | None = None,
        open_files: int | None = None,
        module: str = "skyrocket",
    ) -> None:
        """`open_files` is the limit of descriptors that it is started with; None: that of the tests.

        `module` is another one that runs the same program, with faults.
        """
        self.lines: list[str] = []
        limited = [] if open_files is None else ["sh", "-c", f'ulimit -n {open_files} && exec "$@"', "sh"]
        self.process = subprocess.Popen(
            [*limited, sys.executable, "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "HOME": str(home), **(environment or {})},
        )
        self._reader = threading.Thread(target=self._read, name="output of a program")
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.lines.append(line.rstrip("\n"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(START_SECONDS)  # until its children are gone too: they hold the other end
        assert not self._reader.is_alive(), "a child process is left"

    def await_line(self, pattern: str, *, count: int = 1, seconds: float = START_SECONDS) -> re.Match[str]:
        """The first line, or a later one, in which the pattern is found; fails with all lines when it does not come."""
        deadline = time.monotonic() + seconds
        while True:
            found = [match for line in list(self.lines) if (match := re.search(pattern, line)) is not None]
            if len(found) >= count:
                return found[count - 1]
            ended = self.process.poll() is not None and not self._reader.is_alive()
            assert time.monotonic() < deadline and not ended, f"no {pattern!r} in:\n" + "\n".join(self.lines)  # noqa: PT018
            time.sleep(0.01)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 60.0) -> int:
        """As an operator does; the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(seconds)
        self._reader.join(seconds)
        return code


class Standalone(Program):
    """`skyrocket standalone`, ready."""

    def __init__(
        self, folder: Path, *settings: str, arguments: tuple[str, ...] = (), open_files: int | None = None
    ) -> None:
        given = ["standalone", "--namesrv-port", "0", "--listen-port", "0", "--broker-ip", "127.0.0.1"]
        given += ["--store", str(folder / "store"), *arguments]
        for setting in (*SMALL_FILES, *settings):
            given += ["--set", setting]
        super().__init__(*given, home=folder, open_files=open_files)
        try:
            ready = self.await_line(r"is ready\. namesrv=\S+:(\d+) broker=(\S+)")
        except BaseException:
            self.__exit__()
            raise
        self.name_server = f"127.0.0.1:{ready[1]}"
        self.brokers = ready[2].split(",")

    @property
    def broker(self) -> str:
        return self.brokers[0]


def output_of(*arguments: str, home: Path) -> "subprocess.CompletedProcess[str]":
    """A program that ends by itself, and what it said."""
    return subprocess.run(
        [sys.executable, "-m", "skyrocket", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "HOME": str(home), "COLUMNS": "200"},
    )


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody waited for has ended too."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def children_of(pid: int) -> list[int]:
    """Processes that a process started, of all its threads."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return sorted(found)
