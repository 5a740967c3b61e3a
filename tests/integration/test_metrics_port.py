"""The metrics of `skyrocket standalone`, unless their port is taken."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.http_get import get
from tests.ports import free_port


def test_standalone_serves_them_unless_the_port_is_taken(tmp_path: Path) -> None:
    port = free_port()
    with standalone(tmp_path / "first", port) as first:
        assert get(port, "/ready") == (200, '{"status": "ready"}\n')
        with standalone(tmp_path / "second", port) as second:
            second.terminate()
            _, said = second.communicate(timeout=60)
            assert f"warning: no metrics and no health page, port {port} cannot be had" in said
            assert second.returncode == 0
        assert first.poll() is None


@contextlib.contextmanager
def standalone(folder: Path, metrics_port: int) -> "Iterator[subprocess.Popen[str]]":
    """The program with nothing set but ports; it is ready when this returns."""
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
            assert "is ready" in process.stdout.readline()
            yield process
        finally:
            process.kill()
