"""The ledger of requirements is complete, its marks name real lines and its places exist."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests import ROOT
from tests.conftest import REQUIREMENT_MARKS
from tests.outcomes import Outcome, Recorder, SuiteRun, read_runs, write_run
from tests.requirements import (
    LEDGER,
    Collected,
    Evidence,
    State,
    anchors,
    collect_marks,
    main,
    parse_ledger,
    place_exists,
    print_missing,
    print_report,
    problems,
    state_of,
)

SAMPLE = """# A ledger

    - A000 An example in the preface · not ours: it is indented

## A: First document

### A chapter

- A001 Plain line
- A002 Guidance — with a dash · documented: guide.md#what-a-crash-can-take
- A003 Elsewhere · not ours: Java only
- A004 Otherwise · differs: 5 s, as the newer release

## B: Second document

- B001 Another line
"""

SAMPLE_TESTS = """
import pytest

@pytest.mark.requirement("A001")
class TestAll:
    def test_method(self): ...

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.requirement("B001"))])
def test_parameters(n): ...
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    (tmp_path / "ledger.md").write_text(SAMPLE)
    (tmp_path / "guide.md").write_text("# Guide\n\n## What a crash can take\n")
    (tmp_path / "tests").mkdir()
    return tmp_path


def run_on(sample: Path, tests: str, *options: str) -> int:
    name = f"test_{sample.name.replace('-', '_')}.py"  # a module name of its own: nested runs share sys.modules
    (sample / "tests" / name).write_text(tests)
    return main([*_places(sample), *options])


def _places(sample: Path) -> list[str]:
    places = {"ledger": "ledger.md", "tests": "tests", "runs": "runs"}
    return [word for option, name in places.items() for word in (f"--{option}", str(sample / name))]


def test_the_ledger_has_388_lines_with_unique_numbers() -> None:
    documents = parse_ledger(LEDGER.read_text(encoding="utf-8"))
    numbers = [requirement.number for document in documents for requirement in document.requirements]
    assert len(numbers) == len(set(numbers)) == 388
    assert [len(document.requirements) for document in documents] == [108, 48, 172, 35, 25]
    assert all(r.number.startswith(document.letter) for document in documents for r in document.requirements)


def test_every_written_state_of_the_ledger_is_in_the_fixed_form() -> None:
    lines = [r for document in parse_ledger(LEDGER.read_text(encoding="utf-8")) for r in document.requirements]
    assert [r.number for r in lines if " · " in r.text] == [], "the state after the middle dot is misspelt"


def test_every_documented_place_exists() -> None:
    documents = parse_ledger(LEDGER.read_text(encoding="utf-8"))
    assert list(problems(documents, Collected({}, []), ROOT)) == []


def test_the_marks_of_our_tests_name_lines_of_the_ledger(request: pytest.FixtureRequest) -> None:
    marks = request.config.stash[REQUIREMENT_MARKS]  # of all tests that were collected, also of those left out
    collected = Collected({number: sorted(names) for number, names in marks.items()}, [])
    assert list(problems(parse_ledger(LEDGER.read_text(encoding="utf-8")), collected, ROOT)) == []


def test_a_line_is_parsed_with_its_state_and_note() -> None:
    first, second = parse_ledger(SAMPLE)
    assert (first.letter, first.title, second.letter) == ("A", "First document", "B")
    plain, guidance, elsewhere, otherwise = first.requirements
    assert (plain.number, plain.text, plain.written_state) == ("A001", "Plain line", State.NOT_YET)
    assert (guidance.text, guidance.written_state) == ("Guidance — with a dash", State.DOCUMENTED)
    assert guidance.note == "guide.md#what-a-crash-can-take"
    assert (elsewhere.written_state, elsewhere.note) == (State.NOT_OURS, "Java only")
    assert (otherwise.written_state, otherwise.note) == (State.DIFFERS, "5 s, as the newer release")


def test_marks_on_classes_and_parameters_count(sample: Path) -> None:
    (sample / "tests" / "test_marks_of_the_sample.py").write_text(SAMPLE_TESTS)
    collected = collect_marks(sample / "tests")
    assert collected.errors == []
    assert {number: [name.rpartition("::")[2] for name in names] for number, names in collected.tests.items()} == {
        "A001": ["test_method"],
        "B001": ["test_parameters[2]"],
    }


def passed(*tests: str) -> Evidence:
    """Tests that carry A001 and passed."""
    return Evidence({"A001": list(tests)}, dict.fromkeys(tests, Outcome.PASSED))


def test_the_report_names_the_tests_that_show_a_line() -> None:
    written = io.StringIO()
    evidence = passed("tests/test_x.py::test_y[1]", "tests/test_x.py::test_y[2]")
    print_report(parse_ledger(SAMPLE), evidence, Console(file=written, width=100))
    report = written.getvalue()
    assert "● A001 Plain line\n       tests/test_x.py::test_y\n" in report
    assert "◐ A002" in report
    assert "– A003" in report
    assert "≠ A004 Otherwise\n       5 s, as the newer release\n" in report
    assert "○ B001" in report
    counts = [cell.strip() for cell in report.splitlines()[-2].split("│")]
    assert counts[1:-1] == ["all", "1", "1", "1", "1", "1", "5"]


def test_the_missing_lines_are_those_that_nothing_supports() -> None:
    written = io.StringIO()
    print_missing(parse_ledger(SAMPLE), passed("t"), Console(file=written))
    assert written.getvalue() == "B001 Another line\n"


def test_a_documented_line_that_a_test_shows_counts_as_shown() -> None:
    guidance = parse_ledger(SAMPLE)[0].requirements[1]
    assert state_of(guidance, Evidence({}, {})) is State.DOCUMENTED
    assert state_of(guidance, Evidence({"A002": ["t"]}, {"t": Outcome.PASSED})) is State.SHOWN


def test_a_line_that_differs_is_not_shown_by_the_test_of_what_there_is_instead() -> None:
    otherwise = parse_ledger(SAMPLE)[0].requirements[3]
    assert state_of(otherwise, Evidence({"A004": ["t"]}, {"t": Outcome.PASSED})) is State.DIFFERS


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        pytest.param({}, State.NOT_YET, id="not run"),
        pytest.param({"t[1]": Outcome.SKIPPED}, State.NOT_YET, id="skipped"),
        pytest.param({"t[1]": Outcome.PASSED, "t[2]": Outcome.FAILED}, State.NOT_YET, id="one failed"),
        pytest.param({"t[1]": Outcome.PASSED, "t[2]": Outcome.SKIPPED}, State.SHOWN, id="one passed"),
        pytest.param({"other": Outcome.PASSED}, State.NOT_YET, id="another test passed"),
    ],
)
def test_a_mark_shows_its_line_only_when_its_test_ran_and_passed(outcomes: dict[str, Outcome], state: State) -> None:
    plain = parse_ledger(SAMPLE)[0].requirements[0]
    assert state_of(plain, Evidence({"A001": ["t[1]", "t[2]"]}, outcomes)) is state


def test_the_report_says_which_lines_lack_a_run(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_on(sample, SAMPLE_TESTS) == 0
    report = capsys.readouterr().out
    assert "2 lines have a test that shows nothing in the newest runs" in report
    assert "::test_method (not run)" in report
    assert "No run is recorded" in report


RECORDED_TESTS = (
    SAMPLE_TESTS
    + """
@pytest.mark.requirement("A002")
def test_left_out(): pytest.skip("not here")
"""
)


def test_the_ledger_follows_what_a_recorded_run_saw(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_on(sample, RECORDED_TESTS)  # before the run nothing is shown
    assert "● A001" not in capsys.readouterr().out
    record(sample)
    run_on(sample, RECORDED_TESTS)
    report = capsys.readouterr().out
    assert "● A001 Plain line" in report
    assert "● B001 Another line" in report
    assert "test_left_out (skipped)" in report
    assert "run of nightly at" in report
    assert "3 passed, 1 skipped" in report


def test_a_test_whose_teardown_fails_shows_nothing(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failing = """
import pytest

@pytest.fixture
def leaves_something():
    yield
    raise OSError

@pytest.mark.requirement("A001")
def test_with_it(leaves_something): ...
"""
    run_on(sample, failing)
    record(sample)
    capsys.readouterr()
    run_on(sample, failing)
    assert "test_with_it (failed)" in capsys.readouterr().out


def test_an_interrupted_run_leaves_the_one_before(sample: Path) -> None:
    run_on(sample, "def test_stops(): raise KeyboardInterrupt")
    before = SuiteRun("nightly", "abc", 0, 1, {"t": "passed"})
    write_run(before, sample / "runs")
    record(sample)
    assert read_runs(sample / "runs") == [before]


def record(sample: Path) -> None:
    """Run the sample's tests as `pytest --record nightly` does."""
    plugins = [Recorder("nightly", sample / "runs")]
    pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(sample / "tests")], plugins=plugins)


def test_a_true_ledger_exits_with_zero(sample: Path) -> None:
    assert run_on(sample, SAMPLE_TESTS) == 0


def test_a_mark_of_an_unknown_number_exits_with_one(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_on(sample, SAMPLE_TESTS.replace("B001", "B999"), "--missing") == 1
    assert "requirement 'B999' is not in the ledger" in capsys.readouterr().out


def test_a_documented_place_without_its_heading_exits_with_one(
    sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (sample / "guide.md").write_text("# Guide\n")
    assert run_on(sample, SAMPLE_TESTS) == 1
    assert "A002 is documented at guide.md#what-a-crash-can-take, which does not exist" in capsys.readouterr().out


def test_a_test_module_that_cannot_be_imported_exits_with_one(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_on(sample, "import no_such_module_anywhere") == 1
    assert "cannot be collected" in capsys.readouterr().out


def test_places_are_found_by_file_and_heading(sample: Path) -> None:
    assert place_exists("guide.md", sample)
    assert place_exists("guide.md#guide", sample)
    assert not place_exists("guide.md#gui", sample)
    assert not place_exists("nowhere.md#guide", sample)


def test_anchors_are_made_as_markdown_viewers_make_them() -> None:
    assert anchors("# What `SYNC_FLUSH` costs, and why?\ntext\n### A – b ###") == {
        "what-sync_flush-costs-and-why",
        "a--b",
    }
