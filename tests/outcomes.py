"""What became of each test in the newest run of a suite: `pytest --record SUITE` writes var/suites/SUITE.json.

Only a run that came to its end is written, so that one that was interrupted does not hide the one before.
"""

import json
import subprocess
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

import pytest

from tests import ROOT

RUNS = ROOT / "var" / "suites"


class Outcome(Enum):
    """How a test ended, the weightiest first; without one it did not run."""

    FAILED = "failed"
    PASSED = "passed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class SuiteRun:
    """One run of a suite from beginning to end; `outcomes` by pytest's id of the test, with its parameters."""

    suite: str
    version: str
    finished_at: float
    seconds: float
    outcomes: dict[str, str]

    @property
    def passed(self) -> bool:
        """Whether something ran and nothing failed."""
        found = set(self.outcomes.values())
        return Outcome.PASSED.value in found and Outcome.FAILED.value not in found

    def count(self, outcome: Outcome) -> int:
        """How many tests ended like that."""
        return list(self.outcomes.values()).count(outcome.value)


class Recorder:
    """A pytest plugin that writes a `SuiteRun` when the session ends; under xdist it listens in the main process."""

    def __init__(self, suite: str, directory: Path = RUNS) -> None:
        self._suite = suite
        self._directory = directory
        self._began_at = time.time()
        self._outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.skipped or report.when == "call":
            before = self._outcomes.get(report.nodeid)
            if before != Outcome.FAILED.value:  # what fails after the call (its teardown) has failed
                self._outcomes[report.nodeid] = report.outcome

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._outcomes[report.nodeid] = Outcome.FAILED.value

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return
        now = time.time()
        run = SuiteRun(self._suite, version(), now, now - self._began_at, dict(sorted(self._outcomes.items())))
        write_run(run, self._directory)


def write_run(run: SuiteRun, directory: Path = RUNS) -> None:
    """Replace what is known of the suite."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{run.suite}.json"
    path.with_suffix(".new").write_text(json.dumps(asdict(run), indent=1), encoding="utf-8")
    path.with_suffix(".new").replace(path)


def read_runs(directory: Path = RUNS) -> list[SuiteRun]:
    """The newest run of each suite, by name."""
    return [SuiteRun(**json.loads(path.read_text(encoding="utf-8"))) for path in sorted(directory.glob("*.json"))]


def merged(runs: Iterable[SuiteRun]) -> dict[str, Outcome]:
    """One outcome per test, whichever suites ran it: see `together`."""
    found: dict[str, set[Outcome]] = {}
    for run in runs:
        for test, text in run.outcomes.items():
            found.setdefault(test, set()).add(Outcome(text))
    return {test: outcome for test, outcomes in found.items() if (outcome := together(outcomes))}


def together(outcomes: Iterable[Outcome]) -> Outcome | None:
    """Failed if one failed, else passed if one passed, else skipped; None when nothing ran."""
    found = set(outcomes)
    return next((outcome for outcome in Outcome if outcome in found), None)


def version() -> str:
    """The commit that is checked out, with a plus when files were changed since."""
    commit = _git("rev-parse", "--short", "HEAD")
    return commit + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "") if commit else "unknown"


def _git(*arguments: str) -> str:
    """What git says, or nothing where there is no checkout (in an unpacked archive)."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
