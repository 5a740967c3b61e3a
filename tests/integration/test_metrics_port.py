"""The metrics of `skyrocket standalone`, and a port that is taken."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.http_get import get
from tests.ports import free_port


def test_standalone_serves_them_at_the_port_that_was_chosen_or_not_at_all(tmp_path: Path) -> None:
    port = free_port()
    with standalone(tmp_path / "first", port) as first:
        assert get(port, "/ready") == (200, '{"status": "ready"}\n')
        with standalone(tmp_path / "second", port, is_ready=False) as second:
            _, said = second.communicate(timeout=60)
        assert second.returncode == 1
        assert f"cannot serve metrics: port {port} is taken by another program" in said
        assert "--set metricsPromExporterPort=…, or none with --set metricsExporterType=DISABLE" in said
        assert first.poll() is None


@contextlib.contextmanager
def standalone(folder: Path, metrics_port: int, *, is_ready: bool = True) -> "Iterator[subprocess.Popen[str]]":
    """The program with nothing set but ports; it is ready when this returns, if it shall be."""
    folder.mkdir()
    command = [sys.executable, "-m", "skyrocket", "standalone", "--namesrv-port", "0", "--listen-port", "0"]
    command += ["--broker-ip", "127.0.0.1", "--store", str(folder / "store")]
    command += ["--set", f"metricsPromExporterPort={metrics_port}", "--set", "mappedFileSizeCommitLog=1048576"]
    environment = {**os.environ, "HOME": str(folder)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            if is_ready:
                assert "is ready" in process.stdout.readline()
            yield process
        finally:
            process.kill()
