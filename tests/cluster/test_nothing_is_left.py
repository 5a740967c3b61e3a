"""Many clusters in one process leave no thread, descriptor, port, file or map behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT


@pytest.mark.parametrize("count", [5, pytest.param(200, marks=pytest.mark.slow)])
def test_clusters_leave_nothing_behind(count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster.many_clusters", str(count)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    with capsys.disabled():
        print(f"\n{count} clusters, each ready in {outcome['ready'] * 1000:.0f} ms (median)")  # noqa: T201
    assert outcome["after"] == outcome["before"]
    assert outcome["after"]["files"] == []
    assert outcome["after"]["ports"] == 0
    assert not [name for name in outcome["after"]["threads"] if "local-cluster" in name or "store" in name]
    assert done.stderr == ""
