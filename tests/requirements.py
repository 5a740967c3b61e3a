"""Which requirement is shown by which test: `make requirements`, or `python -m tests.requirements --missing`.

The ledger is docs/internals/requirements.md. Tests are collected by pytest itself, not read as text, so marks on
functions, classes, modules and parameters all count. A mark alone shows nothing: its test must have run and passed in
the newest runs of the suites (tests/outcomes.py).
"""

import argparse
import contextlib
import io
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from tests import ROOT
from tests.outcomes import RUNS, Outcome, SuiteRun, merged, read_runs, together

LEDGER = ROOT / "docs" / "internals" / "requirements.md"

_DOCUMENT = re.compile(r"## (?P<letter>[A-Z]): (?P<title>.+)")
_LINE = re.compile(r"- (?P<number>[A-Z]\d{3}) (?P<text>.+?)(?: · (?P<kind>documented|differs|not ours): (?P<note>.+))?")
_HEADING = re.compile(r"#+ (?P<text>.+?)\s*#*")


class State(Enum):
    """What became of a line."""

    SHOWN = "shown"
    DOCUMENTED = "documented"
    DIFFERS = "differs"
    NOT_OURS = "not ours"
    NOT_YET = "not yet"


@dataclass(frozen=True)
class Requirement:
    """One line of the ledger; `note` is the place or the reason that follows its written state."""

    number: str
    text: str
    written_state: State = State.NOT_YET
    note: str = ""


@dataclass(frozen=True)
class Document:
    """The lines of one requirement document."""

    letter: str
    title: str
    requirements: list[Requirement] = field(default_factory=list)


@dataclass(frozen=True)
class Collected:
    """What pytest found: its ids of tests by requirement number, and the modules that it could not import."""

    tests: dict[str, list[str]]
    errors: list[str]


def parse_ledger(text: str) -> list[Document]:
    """The documents of a ledger, in order."""
    documents: list[Document] = []
    for line in text.splitlines():
        if heading := _DOCUMENT.fullmatch(line):
            documents.append(Document(heading["letter"], heading["title"]))
        elif entry := _LINE.fullmatch(line):
            state = State(entry["kind"]) if entry["kind"] else State.NOT_YET
            documents[-1].requirements.append(Requirement(entry["number"], entry["text"], state, entry["note"] or ""))
    return documents


@dataclass(frozen=True)
class Evidence:
    """The marks of the tests, and what became of the tests in the newest runs."""

    tests: Mapping[str, Sequence[str]]
    outcomes: Mapping[str, Outcome]

    def shown(self, number: str) -> bool:
        """Whether a test of the line ran and passed, and none failed."""
        return self._together(self.tests.get(number, ())) is Outcome.PASSED

    def supports(self, number: str) -> Iterator[str]:
        """The tests of the line, those with parameters as one, each with what keeps it from showing something."""
        names: dict[str, list[str]] = {}
        for test in self.tests.get(number, ()):
            names.setdefault(test.partition("[")[0], []).append(test)
        for name, tests in names.items():
            outcome = self._together(tests)
            if outcome is Outcome.PASSED:
                yield name
            else:
                yield f"{name} ({outcome.value if outcome else 'not run'})"

    def _together(self, tests: Iterable[str]) -> Outcome | None:
        return together(self.outcomes[test] for test in tests if test in self.outcomes)


def state_of(requirement: Requirement, evidence: Evidence) -> State:
    """A test says more than a sentence: a documented line that is also shown counts as shown.

    But what differs stays so: its tests show what there is instead.
    """
    if requirement.written_state is not State.DIFFERS and evidence.shown(requirement.number):
        return State.SHOWN
    return requirement.written_state


def collect_marks(tests: Path) -> Collected:
    """Let pytest collect a folder and note the marks of every test."""
    listener = MarkListener()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "-m", "", str(tests)], plugins=[listener])
    return Collected({number: sorted(names) for number, names in listener.tests.items()}, listener.errors)


class MarkListener:
    """A pytest plugin that only looks."""

    def __init__(self) -> None:
        self.tests: dict[str, set[str]] = {}
        self.errors: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for mark in item.iter_markers("requirement"):
                for number in mark.args:
                    self.tests.setdefault(str(number), set()).add(item.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors.append(f"{report.nodeid} cannot be collected: {report.longreprtext.strip().splitlines()[-1]}")


def problems(documents: Iterable[Document], collected: Collected, root: Path) -> Iterator[str]:
    """Everything that makes the ledger untrue."""
    yield from collected.errors
    lines = list(_lines(documents))
    known = {requirement.number for requirement in lines}
    for number, names in sorted(collected.tests.items()):
        if number not in known:
            yield f"requirement {number!r} is not in the ledger; marked by {', '.join(names)}"
    for requirement in lines:
        if requirement.written_state is State.DOCUMENTED and not place_exists(requirement.note, root):
            yield f"{requirement.number} is documented at {requirement.note}, which does not exist"


def place_exists(place: str, root: Path) -> bool:
    """Whether `docs/guides/client.md#sending` names a file and one of its headings."""
    name, _, anchor = place.partition("#")
    path = root / name
    return path.is_file() and (not anchor or anchor in anchors(path.read_text(encoding="utf-8")))


def anchors(markdown: str) -> set[str]:
    """The anchors that GitHub and most viewers give to the headings of a text."""
    headings = (heading["text"].lower() for line in markdown.splitlines() if (heading := _HEADING.fullmatch(line)))
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in headings}


def print_report(documents: Sequence[Document], evidence: Evidence, console: Console) -> None:
    """Per document each line with its state and what supports it, then the counts."""
    for document in documents:
        console.rule(f"{document.letter}: {document.title}", align="left")
        for requirement in document.requirements:
            state = state_of(requirement, evidence)
            console.print(f"{_MARKS[state]} {requirement.number} {requirement.text}", style=_COLOURS[state])
            for support in (*evidence.supports(requirement.number), requirement.note):
                if support:
                    console.print(f"       {support}", style="dim")
    console.print(_summary(documents, evidence))
    print_unproven(documents, evidence, console)


def print_missing(documents: Sequence[Document], evidence: Evidence, console: Console) -> None:
    """Only the lines that nothing supports yet."""
    for requirement in _lines(documents):
        if state_of(requirement, evidence) is State.NOT_YET and requirement.number not in evidence.tests:
            console.print(f"{requirement.number} {requirement.text}")
    print_unproven(documents, evidence, console)


def print_unproven(documents: Iterable[Document], evidence: Evidence, console: Console) -> None:
    """The lines that have a test which did not run, or did not pass, in the newest runs."""
    unproven = [
        line
        for line in _lines(documents)
        if line.number in evidence.tests and state_of(line, evidence) not in (State.SHOWN, State.DIFFERS)
    ]
    if unproven:
        console.print(f"{len(unproven)} lines have a test that shows nothing in the newest runs:", style="yellow")
    for line in unproven:
        console.print(f"{line.number} {', '.join(evidence.supports(line.number))}")


def print_runs(runs: Sequence[SuiteRun], console: Console) -> None:
    """Which runs the states rest on."""
    if not runs:
        console.print(f"No run is recorded in {RUNS.relative_to(ROOT)}: `make test`, then `make long`.", style="yellow")
    for run in runs:
        finished = datetime.fromtimestamp(run.finished_at, UTC).isoformat(" ", "minutes")
        counts = ", ".join(f"{run.count(outcome)} {outcome.value}" for outcome in Outcome if run.count(outcome))
        console.print(f"run of {run.suite} at {run.version}, {finished}: {counts}", style="dim")


def _lines(documents: Iterable[Document]) -> Iterator[Requirement]:
    for document in documents:
        yield from document.requirements


_MARKS = {State.SHOWN: "●", State.DOCUMENTED: "◐", State.DIFFERS: "≠", State.NOT_OURS: "–", State.NOT_YET: "○"}
_COLOURS = {
    State.SHOWN: "green",
    State.DOCUMENTED: "cyan",
    State.DIFFERS: "magenta",
    State.NOT_OURS: "dim",
    State.NOT_YET: "yellow",
}


def _summary(documents: Iterable[Document], evidence: Evidence) -> Table:
    table = Table(title="Requirements")
    table.add_column("document")
    for state in State:
        table.add_column(f"{_MARKS[state]} {state.value}", justify="right", style=_COLOURS[state])
    table.add_column("all", justify="right")
    totals = [0] * (len(State) + 1)
    for document in documents:
        states = [state_of(requirement, evidence) for requirement in document.requirements]
        counts = [*(states.count(state) for state in State), len(states)]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        table.add_row(document.letter, *map(str, counts))
    table.add_section()
    table.add_row("all", *map(str, totals))
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the ledger; 1 when it is not true."""
    parser = argparse.ArgumentParser(prog="python -m tests.requirements", description=__doc__)
    parser.add_argument("--missing", action="store_true", help="list only the lines that are not yet shown")
    parser.add_argument("--ledger", type=Path, default=LEDGER, help="another ledger (its places are sought beside it)")
    parser.add_argument("--tests", type=Path, default=ROOT / "tests", help="another folder of tests")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where `pytest --record SUITE` wrote what it saw")
    options = parser.parse_args(arguments)

    root = ROOT if options.ledger == LEDGER else options.ledger.parent
    documents = parse_ledger(options.ledger.read_text(encoding="utf-8"))
    collected = collect_marks(options.tests)
    runs = read_runs(options.runs)
    evidence = Evidence(collected.tests, merged(runs))
    console = Console(highlight=False, markup=False, soft_wrap=True)
    (print_missing if options.missing else print_report)(documents, evidence, console)
    print_runs(runs, console)
    found = list(problems(documents, collected, root))
    for problem in found:
        console.print(f"wrong: {problem}", style="bold red")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
