"""A Spark driver as a program that tests kill: a topic streams into Parquet in it."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from skyrocket.testing import LocalCluster
from tests import ROOT
from tests.waiting import wait_until

DEADLINE = 200.0


class Driver:
    """A Spark driver in a process group of its own."""

    def __init__(
        self,
        mq: LocalCluster,
        topic: str,
        folder: Path,
        until: str = "forever",
        *,
        place: str | None = None,
        conf: Mapping[str, str] | None = None,
    ) -> None:
        """`place` is where checkpoint and lake are, the folder unless said otherwise."""
        self._log = folder / "driver.log"
        command = [sys.executable, "-m", "tests.pipeline.stream_to_parquet"]
        settings = json.dumps({"spark.local.dir": str(folder / "local"), **(conf or {})})
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                [*command, mq.name_server_address, topic, place or str(folder), until, settings],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd=ROOT,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """kill -9, of Python, the JVM and all workers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Until something is so; it must not end before."""

        def is_so() -> bool:
            assert self._process.poll() is None, self.tail()
            return condition()

        wait_until(is_so, seconds=DEADLINE)

    def kill_a_worker(self, chance: random.Random) -> int:
        """kill -9 of one Python process that runs tasks; how many there were to choose from."""
        workers = [pid for pid in processes() if parent(pid) in self._daemons()]
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)
        return len(workers)

    def _daemons(self) -> set[int]:
        """Spark forks its workers from a process that it starts once."""
        return {
            pid for pid in processes() if session_of(pid) == self._process.pid and b"pyspark.daemon" in command(pid)
        }

    def wait(self) -> None:
        assert self._process.wait(DEADLINE) == 0, self.tail()

    def tail(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]


def processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""  # it has just ended


def session_of(pid: int) -> int:
    return _status_number(pid, 3)


def parent(pid: int) -> int:
    return _status_number(pid, 1)


def _status_number(pid: int, place: int) -> int:
    """A number of /proc/<pid>/stat behind the name, which stands in brackets and may hold anything."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[place])
    except OSError:
        return -1
