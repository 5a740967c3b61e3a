"""Our own server for the length of a benchmark: `skyrocket standalone` on free ports.

Its store vanishes with it, unless the caller has one."""

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

WORK = Path(__file__).parent.parent.parent / "var" / "bench"  # on a disk: /tmp may live in memory
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 20.0
_READY = re.compile(r"namesrv=\S*:(\d+) broker=(\S+:\d+)\s")


class NotStarted(Exception):
    """The server did not come up; says what it said."""


@dataclass(frozen=True)
class OwnServer:
    """A running standalone server."""

    pid: int
    name_server: tuple[str, int]
    brokers: tuple[tuple[str, int], ...]
    seconds_to_ready: float

    @property
    def broker(self) -> tuple[str, int]:
        """The only one, or the first."""
        return self.brokers[0]


@contextlib.contextmanager
def own_server(
    settings: Sequence[str] = (),
    work: Path = WORK,
    stop_timeout_s: float = STOP_TIMEOUT_S,
    brokers: int = 1,
    store: Path | None = None,
) -> Iterator[OwnServer]:
    """Start, wait until it is ready, stop as an operator would; `settings` are --set options."""
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work, prefix="skyrocket-") as folder, open(f"{folder}/stderr", "w+") as errors:
        command = [sys.executable, "-m", "skyrocket", "standalone", "--namesrv-port", "0", "--listen-port", "0"]
        command += ["--broker-ip", "127.0.0.1", "--store", str(store or f"{folder}/store")]
        command += ["--brokers", str(brokers)] if brokers > 1 else []
        command += [part for setting in settings for part in ("--set", setting)]
        began = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, "HOME": folder}
        )
        try:
            ready = _await_ready(process, errors.name)
            yield OwnServer(
                process.pid,
                ("127.0.0.1", int(ready[1])),
                tuple(("127.0.0.1", int(text.rpartition(":")[2])) for text in ready[2].split(",")),
                time.monotonic() - began,
            )
            process.send_signal(signal.SIGTERM)
            process.wait(stop_timeout_s)
        finally:
            process.kill()
            process.communicate()


def _await_ready(process: "subprocess.Popen[bytes]", errors: str) -> re.Match[str]:
    assert process.stdout is not None
    deadline = time.monotonic() + START_TIMEOUT_S
    said = ""
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([process.stdout], [], [], left)[0]:
            break
        chunk = os.read(process.stdout.fileno(), 4096)
        if not chunk:
            break
        said += chunk.decode(errors="replace")
        if ready := _READY.search(said):
            return ready
    complaint = Path(errors).read_text(errors="replace").strip()[-1000:]
    raise NotStarted(f"`skyrocket standalone` did not become ready: {complaint or said or 'it said nothing'}")
