"""Which requirement is shown by which test: `make requirements`, or `python -m tests.requirements --missing`.

The ledger is docs/internals/requirements.md. Tests are collected by pytest itself, not read as text, so marks on
functions, classes, modules and parameters all count, and a test that pytest would not run shows nothing.
"""

import argparse
import contextlib
import io
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from tests import ROOT

LEDGER = ROOT / "docs" / "internals" / "requirements.md"

_DOCUMENT = re.compile(r"## (?P<letter>[A-Z]): (?P<title>.+)")
_LINE = re.compile(r"- (?P<number>[A-Z]\d{3}) (?P<text>.+?)(?: · (?P<kind>documented|not ours): (?P<note>.+))?")
_HEADING = re.compile(r"#+ (?P<text>.+?)\s*#*")


class State(Enum):
    """What became of a line."""

    SHOWN = "shown"
    DOCUMENTED = "documented"
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
    """What pytest found: test names by requirement number, and the modules that it could not import."""

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


def state_of(requirement: Requirement, tests: Mapping[str, Sequence[str]]) -> State:
    """A test says more than a sentence: a documented line that is also shown counts as shown."""
    return State.SHOWN if tests.get(requirement.number) else requirement.written_state


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
            name = item.nodeid.partition("[")[0]  # all parameters of a test are one test
            for mark in item.iter_markers("requirement"):
                for number in mark.args:
                    self.tests.setdefault(str(number), set()).add(name)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors.append(f"{report.nodeid} cannot be collected: {report.longreprtext.strip().splitlines()[-1]}")


def problems(documents: Iterable[Document], collected: Collected, root: Path) -> Iterator[str]:
    """Everything that makes the ledger untrue."""
    yield from collected.errors
    lines = [requirement for document in documents for requirement in document.requirements]
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


def print_report(documents: Iterable[Document], tests: Mapping[str, Sequence[str]], console: Console) -> None:
    """Per document each line with its state and what supports it, then the counts."""
    documents = list(documents)
    for document in documents:
        console.rule(f"{document.letter}: {document.title}", align="left")
        for requirement in document.requirements:
            state = state_of(requirement, tests)
            console.print(f"{_MARKS[state]} {requirement.number} {requirement.text}", style=_COLOURS[state])
            for support in tests.get(requirement.number) or filter(None, [requirement.note]):
                console.print(f"       {support}", style="dim")
    console.print(_summary(documents, tests))


def print_missing(documents: Iterable[Document], tests: Mapping[str, Sequence[str]], console: Console) -> None:
    """Only the lines that nothing supports yet."""
    for document in documents:
        for requirement in document.requirements:
            if state_of(requirement, tests) is State.NOT_YET:
                console.print(f"{requirement.number} {requirement.text}")


_MARKS = {State.SHOWN: "●", State.DOCUMENTED: "◐", State.NOT_OURS: "–", State.NOT_YET: "○"}
_COLOURS = {State.SHOWN: "green", State.DOCUMENTED: "cyan", State.NOT_OURS: "dim", State.NOT_YET: "yellow"}


def _summary(documents: Iterable[Document], tests: Mapping[str, Sequence[str]]) -> Table:
    table = Table(title="Requirements")
    table.add_column("document")
    for state in State:
        table.add_column(f"{_MARKS[state]} {state.value}", justify="right", style=_COLOURS[state])
    table.add_column("all", justify="right")
    totals = [0] * (len(State) + 1)
    for document in documents:
        states = [state_of(requirement, tests) for requirement in document.requirements]
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
    options = parser.parse_args(arguments)

    root = ROOT if options.ledger == LEDGER else options.ledger.parent
    documents = parse_ledger(options.ledger.read_text(encoding="utf-8"))
    collected = collect_marks(options.tests)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    (print_missing if options.missing else print_report)(documents, collected.tests, console)
    found = list(problems(documents, collected, root))
    for problem in found:
        console.print(f"wrong: {problem}", style="bold red")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
