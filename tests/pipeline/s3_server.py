"""A server that speaks S3: moto's, from PyPI, in a virtual environment of its own below var/."""

import contextlib
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.ports import free_port
from tests.waiting import wait_until

_HOME = ROOT / "var" / "moto"


def _program() -> Path:
    """moto_server, installed if it is not there; skips where it cannot be."""
    program = _HOME / "bin" / "moto_server"
    if not program.exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(_HOME)], check=False, capture_output=True)
        install = [str(_HOME / "bin" / "python"), "-m", "pip", "install", "-q", "moto[s3,server]"]
        if made.returncode or subprocess.run(install, check=False, timeout=600).returncode:
            pytest.skip("moto cannot be installed here")
    return program


@contextlib.contextmanager
def running_s3() -> Iterator[str]:
    """The server's address."""
    port = free_port()
    command = [str(_program()), "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/moto-api/", timeout=5):
            return True
        return False

    try:
        wait_until(answers, "S3 answers")
        yield address
    finally:
        server.terminate()
        server.wait(30)
