"""Every long test has a suite that runs it, every suite a target, and the table says how they went."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from tests import ROOT, suites
from tests.conftest import SLOW_FILES
from tests.outcomes import SuiteRun, read_runs, write_run
from tests.suites import SUITES, Suite


def test_every_long_test_belongs_to_a_suite(request: pytest.FixtureRequest) -> None:
    long_suites = [ROOT / path for suite in SUITES if suite.name != "test" for path in suite.paths]
    alone = {
        str(file.relative_to(ROOT))
        for file in request.config.stash[SLOW_FILES]
        if not any(file.is_relative_to(path) for path in long_suites)
    }
    assert alone == set()


def test_every_fault_test_belongs_to_one_part_of_the_fault_suite() -> None:
    parts = [path for suite in SUITES if suite.name.startswith("faults-") for path in suite.paths]
    for folder in ("tests/faults/", "tests/interop/failover/"):
        files = [str(file.relative_to(ROOT)) for file in (ROOT / folder).glob("test_*.py")]
        assert sorted(path for path in parts if path.startswith(folder)) == sorted(files)


def test_the_paths_of_the_suites_exist() -> None:
    assert [path for suite in SUITES for path in suite.paths if not (ROOT / path).exists()] == []


def test_every_suite_is_a_target_of_make() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {suite.name for suite in SUITES} <= targets


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The suites that were started; each passes, but that of the name `bad` fails. The commit is `abc`."""
    started: list[str] = []

    def run(suite: Suite) -> int:
        started.append(suite.name)
        outcome = "failed" if suite.name == "bad" else "passed"
        write_run(SuiteRun(suite.name, "abc", 0, 61, {"t": outcome, "u": "passed"}), tmp_path)
        return int(outcome == "failed")

    monkeypatch.setattr(suites, "run", run)
    monkeypatch.setattr(suites, "version", lambda: "abc")
    monkeypatch.setattr(suites, "read_runs", lambda: read_runs(tmp_path))
    return started


GOOD, BAD, LAST = (Suite(name, "", ()) for name in ("good", "bad", "last"))


def run_all(*, again: bool = False) -> tuple[int, str]:
    written = io.StringIO()
    status = suites.run_all([GOOD, BAD, LAST], Console(file=written, width=120), again=again)
    return status, written.getvalue()


def test_a_suite_that_fails_does_not_keep_the_others_from_running(ran: list[str]) -> None:
    status, printed = run_all()
    assert (status, ran) == (1, ["good", "bad", "last"])
    rows = {cells[1].strip(): [cell.strip() for cell in cells[2:7]] for cells in _cells(printed)}
    assert rows["good"] == ["passed", "0", "2", "0", "0:01:01"]
    assert rows["bad"] == ["failed", "1", "1", "0", "0:01:01"]


@pytest.mark.parametrize(("name", "is_marked"), [("faults-store", True), ("interop", False)])
def test_a_part_of_the_fault_suite_that_took_more_than_20_minutes_is_marked(name: str, is_marked: bool) -> None:
    written = io.StringIO()
    took = SuiteRun(name, "abc", 0, 20 * 60 + 1, {"t": "passed"})
    Console(file=written, width=120).print(suites.table([Suite(name, "", ())], [took], "abc"))
    assert ("0:20:01, over 20 min" in written.getvalue()) is is_marked


def test_what_has_passed_at_this_commit_is_left_out_the_next_time(ran: list[str]) -> None:
    run_all()
    ran.clear()
    run_all()
    assert ran == ["bad"]
    ran.clear()
    run_all(again=True)
    assert ran == ["good", "bad", "last"]


def test_changed_files_let_everything_run(ran: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run_all()
    ran.clear()
    monkeypatch.setattr(suites, "version", lambda: "abc+")
    run_all()
    assert ran == ["good", "bad", "last"]


def test_an_unknown_suite_is_refused_with_the_names_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        suites.main(["faults-stoer"])
    assert refused.value.code == 2
    assert "there is no suite 'faults-stoer'; there are test, faults-store" in capsys.readouterr().err


def _cells(printed: str) -> list[list[str]]:
    return [line.split("│") for line in printed.splitlines() if line.startswith("│")]
