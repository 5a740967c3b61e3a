"""The matrix of clients and scenarios: kept from the last run, printed, and written into the documentation.

python -m tests.interop.matrix                            prints it
python -m tests.interop.matrix --write docs/internals/interop.md    replaces the table in that page
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from tests import ROOT
from tests.interop.admin_verbs import NOT_YET as VERBS_NOT_YET
from tests.interop.admin_verbs import VERBS
from tests.interop.apache import VERSIONS, locked
from tests.interop.client_kinds import CLIENTS
from tests.interop.compared.table import compared_table
from tests.interop.scenarios import SCENARIOS

RESULTS = ROOT / "var" / "interop" / "results.json"
BEGIN, END = "<!-- {}: written by `python -m tests.interop.matrix --write` -->", "<!-- end of {} -->"

PASS, NONE, FAIL, SKIPPED, NOT_RUN = "pass", "client has none", "fail", "skipped", "not run"


@dataclass(frozen=True)
class Cell:
    """How a scenario went with a client; the reason of a fail, a skip, or of a feature that the client lacks."""

    outcome: str
    reason: str = ""


def record(client: str, scenario: str, cell: Cell) -> None:
    """Keep the outcome for the matrix."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with locked(RESULTS.with_suffix(".lock")):
        results = recorded()
        results.setdefault(client, {})[scenario] = cell
        plain = {name: {row: [one.outcome, one.reason] for row, one in kept.items()} for name, kept in results.items()}
        RESULTS.write_text(json.dumps(plain, indent=1, ensure_ascii=False))


def recorded() -> dict[str, dict[str, Cell]]:
    """What earlier runs left."""
    if not RESULTS.exists():
        return {}
    plain = json.loads(RESULTS.read_text())
    return {client: {row: Cell(*cell) for row, cell in cells.items()} for client, cells in plain.items()}


def rows() -> list[str]:
    return list(SCENARIOS)


def columns() -> list[str]:
    return [str(client) for client in CLIENTS]


def table(results: dict[str, dict[str, Cell]]) -> str:
    """The matrix as Markdown, with a footnote per missing feature."""
    notes: list[str] = []

    def text(client: str, scenario: str) -> str:
        cell = results.get(client, {}).get(scenario, Cell(NOT_RUN))
        if cell.outcome != NONE:
            return cell.outcome
        note = f"{client}: {cell.reason}"
        if note not in notes:
            notes.append(note)
        return f"{NONE} ({notes.index(note) + 1})"

    lines = [f"| scenario | {' | '.join(columns())} |", "|---" * (1 + len(columns())) + "|"]
    lines += [f"| {row} | {' | '.join(text(column, row) for column in columns())} |" for row in rows()]
    lines += ["", *(f"{number}. {note}." for number, note in enumerate(notes, 1))]
    return "\n".join(lines).rstrip() + "\n"


def admin_rows() -> list[str]:
    """Verbs of the suite, in order, then those that it leaves out."""
    return list(dict.fromkeys([verb.name for verb in VERBS])) + list(VERBS_NOT_YET)


def admin_table(results: dict[str, dict[str, Cell]]) -> str:
    """mqadmin's verbs as Markdown: a verb passes when every command of the suite with it does."""

    def text(verb: str, version: str) -> str:
        if verb in VERBS_NOT_YET:
            return VERBS_NOT_YET[verb]
        numbers = [n for n, one in enumerate(VERBS) if one.name == verb and version.startswith(one.only)]
        if not numbers:
            return "mqadmin has none"
        kept = results.get(f"mqadmin-{version}", {})
        outcomes = {kept.get(f"{verb} {number}", Cell(NOT_RUN)).outcome for number in numbers}
        return next(outcome for outcome in (FAIL, NOT_RUN, PASS) if outcome in outcomes)

    lines = [
        f"| verb | {' | '.join(f'mqadmin {version}' for version in VERSIONS)} |",
        "|---" * (1 + len(VERSIONS)) + "|",
    ]
    lines += [f"| {row} | {' | '.join(text(row, version) for version in VERSIONS)} |" for row in admin_rows()]
    return "\n".join(lines) + "\n"


def written_into(page: str, name: str, new_table: str) -> str:
    """The page with one of its tables replaced."""
    first, last = BEGIN.format(name), END.format(name)
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"the page lacks the lines {first} and {last}")
    return f"{before}{first}\n\n{new_table}\n{last}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace the tables in this page")
    page: Path | None = parser.parse_args().write
    results = recorded()
    tables = {"matrix": table(results), "verbs": admin_table(results), "compared": compared_table()}
    sys.stdout.write("\n".join(tables.values()))
    if page is not None:
        text = page.read_text()
        for name, new_table in tables.items():
            text = written_into(text, name, new_table)
        page.write_text(text)


if __name__ == "__main__":
    main()
