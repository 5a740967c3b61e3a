"""Our server as its users run it: `skyrocket standalone` in a process of its own, on free ports."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

STOP_TIMEOUT_S = 20

# Retries and delayed messages within seconds; level 2 stands out, so that a test can tell it from the others.
SHORT_DELAYS = {"messageDelayLevel": " ".join(["1s", "2s", *["1s"] * 16])}
SQL_FILTERS = {"enablePropertyFilter": "true"}
# Asked every second, and until a producer is known that may answer: some clients make themselves known after 30 s.
QUICK_CHECKS = {"transactionTimeOut": "1000", "transactionCheckInterval": "1000", "transactionCheckMax": "1000"}

TLS_ONLY = {"tls.server.mode": "enforcing"}


@dataclass(frozen=True)
class Standalone:
    """Where a running server is."""

    name_server: str
    broker: str
    store: Path
    is_tls_only: bool = False


@contextlib.contextmanager
def running_standalone(home: Path, settings: Mapping[str, str] | None = None) -> Iterator[Standalone]:
    """Started, and stopped as an operator would: SIGTERM, then a clean end."""
    command = [sys.executable, "-m", "skyrocket", "standalone", "--namesrv-port", "0", "--listen-port", "0"]
    command += ["--broker-ip", "127.0.0.1", "--store", str(home / "store")]
    for key, value in (settings or {}).items():
        command += ["--set", f"{key}={value}"]
    with open(home / "standalone.log", "w") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "HOME": str(home)}
        )
    try:
        assert process.stdout is not None
        ready = re.search(r"namesrv=\S+:(\d+) broker=\S+:(\d+)", process.stdout.readline())
        assert ready is not None, (home / "standalone.log").read_text()
        is_tls_only = TLS_ONLY.items() <= (settings or {}).items()
        yield Standalone(f"127.0.0.1:{ready[1]}", f"127.0.0.1:{ready[2]}", home / "store", is_tls_only)
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_TIMEOUT_S) == 0
    finally:
        process.kill()
        process.wait()
