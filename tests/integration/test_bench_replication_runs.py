"""The benchmark of replication runs to its end and says which goals it met; how fast anything is, is not tested."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.slow

OURS = ["Skyrocket, alone", "Skyrocket, asynchronous slave", "Skyrocket, synchronous slave"]
TWO, ONE, HALF = "two machines", "one machine", "one machine, half load"


def test_a_quick_run_prints_one_table_with_every_figure_and_its_goal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.replication", "--quick", "--markdown", "--work", str(tmp_path / "work")]
    command += ["--only", "cost", "following", "backlog"]  # Apache's pair needs Java and minutes
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    head, _, *rows = [_cells(line) for line in done.stdout.splitlines() if line.startswith("|")]
    table = [dict(zip(head, row, strict=True)) for row in rows]
    assert [row["what"] for row in table if row["what"].startswith("Skyrocket")] == OURS
    has_two = len(os.sched_getaffinity(0)) > 1
    places = [(TWO, "slave"), (TWO, "master"), (ONE, "slave")] if has_two else [(ONE, "slave"), (ONE, "master")]
    places += [(HALF, "slave"), (HALF, "master")]
    read = [row["what"] for row in table if "old backlog" in row["what"]]
    assert read == [f"{where}: an old backlog is read at the {place}" for where, place in places]
    assert sum("another program" in row["what"] for row in table) == 2 * has_two
    assert sum("another program" in row["of"] for row in table) == 2 * has_two
    judged = [row["wanted"] for row in table if row["met"] in ("yes", "no")]
    assert judged == ["≥ 0.85", "≥ 0.5", "≥ 100 MB/s", "≥ 300 MB/s", *["≥ 0.9"] * (1 + 2 * has_two)]
    pulls = [_pulls(line) for line in done.stdout.splitlines() if "pulls at the master" in line]
    # Who is sent to the slave leaves the master alone.
    assert [("master", "slave")[master == 0] for master, slave in pulls] == [place for _, place in places]
    assert all((master == 0) != (slave == 0) for master, slave in pulls)
    assert not list((tmp_path / "work").iterdir()), "the stores of a run are removed"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def _pulls(remark: str) -> tuple[int, int]:
    """At the master, at the slave."""
    counts = re.search(r"([\d,]+) pulls at the master, ([\d,]+) at the slave", remark)
    assert counts is not None, remark
    master, slave = (int(count.replace(",", "")) for count in counts.groups())
    return master, slave
