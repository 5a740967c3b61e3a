"""`skyrocket standalone` as a program whose memory is measured."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_port


@dataclass
class MeasuredProgram:
    """`skyrocket standalone` and its ports."""

    process: "subprocess.Popen[str]"
    name_server: int
    broker: int

    @property
    def resident_mb(self) -> float:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        match = re.search(r"VmRSS:\s+(\d+) kB", text)
        assert match is not None
        return int(match[1]) / 1024


@contextlib.contextmanager
def measured(folder: Path, *settings: str) -> Iterator[MeasuredProgram]:
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "skyrocket",
        "standalone",
        "--no-console",
        "--namesrv-port",
        "0",
        "--listen-port",
        str(port),
    ]
    command += ["--broker-ip", "127.0.0.1", "--store", str(folder / "store")]
    for setting in ("mappedFileSizeCommitLog=16777216", *settings):
        command += ["--set", setting]
    log = (folder / "log").open("w")
    with (
        log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "HOME": str(folder)}
        ) as process,
    ):
        try:
            assert process.stdout is not None
            ready = re.search(r"namesrv=\S+:(\d+) broker=\S+:(\d+)", process.stdout.readline())
            assert ready is not None, (folder / "log").read_text()
            yield MeasuredProgram(process, int(ready[1]), int(ready[2]))
        finally:
            process.kill()
