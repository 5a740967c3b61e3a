"""Celery itself, in an environment of its own: it pins a python-dateutil that our other tools have left behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skyrocket.testing import LocalCluster
from tests import ROOT

HOME = ROOT / "var" / "celery"


@pytest.fixture(scope="module")
def python() -> Path:
    """An interpreter with Celery and our client as pip installs them together; skips where it cannot."""
    found = HOME / "bin" / "python"
    if not (HOME / "bin" / "celery").exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=False, capture_output=True)
        install = [str(found), "-m", "pip", "install", "-q", f"{ROOT}[celery]"]
        if made.returncode or subprocess.run(install, check=False, timeout=900).returncode:
            pytest.skip("Celery cannot be installed here")
    return found


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_the_example_for_celery_pays_at_the_second_attempt(python: Path, rocketmq: LocalCluster) -> None:
    environment = {**os.environ, "NAMESRV_ADDR": rocketmq.name_server_address, "PYTHONPATH": str(ROOT / "src")}
    example = str(ROOT / "examples" / "tasks_celery.py")
    ended = subprocess.run([str(python), example], env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert "paid 8 at the second attempt" in ended.stderr


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_a_worker_as_celerys_own_command_starts_it_runs_what_others_send(python: Path, rocketmq: LocalCluster) -> None:
    environment = {**os.environ, "NAMESRV_ADDR": rocketmq.name_server_address, "PYTHONPATH": str(ROOT / "src")}
    given = ["--workdir", str(ROOT / "examples"), "-A", "tasks_celery"]
    celery = str(HOME / "bin" / "celery")
    sent = subprocess.run(
        [celery, *given, "call", "tasks_celery.pay", "--args=[8]"], env=environment, capture_output=True, timeout=120
    )
    assert sent.returncode == 0, sent.stderr
    command = [celery, *given, "worker", "--pool", "solo", "--loglevel", "INFO"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        assert run.stdout is not None
        said = []
        for line in run.stdout:
            said.append(line)
            if "paid 8 at the second attempt" in line:
                run.terminate()
        assert run.wait(60) == 0, "".join(said)
    assert any("paid 8 at the second attempt" in line for line in said), "".join(said)
