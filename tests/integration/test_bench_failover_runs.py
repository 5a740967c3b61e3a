"""The benchmark of fail-overs runs to its end, and measures the settings that the guide names."""

import itertools
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from bench.failover import __main__ as program
from bench.failover.kept_runs import KeptRuns
from bench.failover.report import Distribution, histogram, rows
from bench.failover.settings import TUNED_BROKER, TUNED_CONTROLLER

from skyrocket.config.sections import BrokerConfig, ControllerConfig, StoreConfig
from skyrocket.config.sections.setting import section_from
from tests import ROOT

PAGE = ROOT / "docs" / "guides" / "failover.md"


def test_the_guide_tunes_what_is_measured() -> None:
    told = re.findall(r"^\| `(\w+)` \| (brokers|controllers) \| \d+ \| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert {key: int(value) for key, of, value in told if of == "brokers"} == TUNED_BROKER
    assert {key: int(value) for key, of, value in told if of == "controllers"} == TUNED_CONTROLLER


def test_the_guide_knows_the_defaults() -> None:
    defaults = re.findall(r"^\| `(\w+)` \| (brokers|controllers) \| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    given = {key: value for key, of, value in defaults if of == "brokers"}
    assert section_from(BrokerConfig, given, allow_unknown=True) == BrokerConfig()
    assert section_from(StoreConfig, given, allow_unknown=True) == StoreConfig()
    given = {key: value for key, of, value in defaults if of == "controllers"}
    assert section_from(ControllerConfig, given, allow_unknown=True) == ControllerConfig()


def test_the_table_judges_ours_by_apaches_and_by_three_seconds() -> None:
    found = rows(
        [
            Distribution("Skyrocket", "default", [2.0, 1.0, 4.0]),
            Distribution("Skyrocket", "tuned", [1.0, 3.5]),
            Distribution("Apache 5.4.0", "default", [5.0]),
        ]
    )
    assert [row[4:] for row in found] == [
        ["1.00 s", "2.00 s", "4.00 s", "4.00 s", "median ≤ 5.00 s", "yes"],
        ["1.00 s", "2.25 s", "3.50 s", "3.50 s", "slowest ≤ 3 s", "no"],
        ["5.00 s", "5.00 s", "5.00 s", "5.00 s", "", ""],
    ]


def test_a_histogram_counts_the_runs_of_each_half_second() -> None:
    assert histogram(Distribution("Skyrocket", "default", [0.9, 1.1, 1.4, 2.6])) == [
        "Skyrocket, default, kill -9",
        "  0.5 to   1.0 s    1  " + "█" * 20,
        "  1.0 to   1.5 s    2  " + "█" * 40,
        "  1.5 to   2.0 s    0",
        "  2.0 to   2.5 s    0",
        "  2.5 to   3.0 s    1  " + "█" * 20,
    ]
    assert len(histogram(Distribution("Skyrocket", "default", [0.5, 60.0]))) <= 22


def test_runs_add_up_over_several_starts_of_one_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []

    def measured(_work: Path, _setting: object, runs: int, *_: object, frozen: bool) -> Generator[float]:
        asked.append(runs)
        yield from itertools.repeat(1.5 if frozen else 0.5, runs)

    monkeypatch.setattr(program, "silences", measured)
    monkeypatch.setattr(program, "version", lambda: "abc")
    given = ["--kept", str(tmp_path), "--markdown", "--only", "ours-tuned", "ours-frozen", "--runs", "3"]

    def counts(*more: str) -> list[str]:
        program.main([*given, *more])
        return [line.split(" | ")[3] for line in capsys.readouterr().out.splitlines() if line.startswith("| Sky")]

    assert counts("--minutes", "0") == []
    KeptRuns(tmp_path, "abc").add("ours-tuned", 0.7)
    KeptRuns(tmp_path, "of another commit").add("ours-frozen", 9.0)
    assert counts("--resume") == ["3", "3"]
    assert asked == [2, 3]
    assert counts("--resume") == ["3", "3"]
    assert asked == [2, 3], "there was nothing left to do"
    assert counts() == ["3", "3"]
    assert asked == [2, 3, 3, 3], "a start without --resume begins anew"


@pytest.mark.slow
def test_a_quick_run_prints_a_row_for_each_set(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.failover", "--quick", "--markdown", "--work", str(tmp_path)]
    command += ["--kept", str(tmp_path / "kept"), "--only", "ours", "ours-frozen"]  # Apache's needs Java and minutes
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    table = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| Skyrocket")]
    assert [row[1:4] for row in table] == [["default", "kill -9", "2"], ["tuned", "SIGSTOP", "2"]]
    assert [path.name for path in tmp_path.iterdir()] == ["kept"], "the stores of a run are removed"
