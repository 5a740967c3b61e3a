"""The benchmark of replication runs to its end and says which goals it met; how fast anything is, is not tested."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.slow

ROWS = (
    "Skyrocket, alone",
    "Skyrocket, asynchronous slave",
    "Skyrocket, synchronous slave",
    "it stays at the master",
    "an asynchronous slave costs of the send rate",
    "a synchronous slave keeps of it",
    "a slave follows",
    "catching up",
    "sends kept while a consumer reads its backlog, sent to the slave",
)


def test_a_quick_run_prints_every_figure_with_its_goal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.replication", "--quick", "--markdown", "--work", str(tmp_path / "work")]
    command += ["--only", "cost", "following", "backlog"]  # Apache's pair needs Java and minutes
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    rows = {cells[1].strip(): cells[2:-1] for line in done.stdout.splitlines() if len(cells := line.split("|")) > 2}
    assert [row for row in ROWS if not any(name.startswith(row) for name in rows)] == []
    moved, stayed = rows["sent to the slave"], rows["it stays at the master"]
    assert _number(moved[-1]) > _number(moved[-2]), "the consumer was sent to the slave"
    assert (_number(stayed[-1]), _number(stayed[-2]) > 0) == (0, True), "and stayed at the master without the setting"
    assert not list((tmp_path / "work").iterdir()), "the stores of a run are removed"


def _number(cell: str) -> int:
    return int(cell.replace(",", ""))
