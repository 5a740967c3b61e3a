"""Our client against three servers: outcomes kept from the last run, printed, and written into the documentation.

python -m tests.integration.client.matrix                           prints the table
python -m tests.integration.client.matrix --write docs/guides/client.md    replaces it in that page
"""

import argparse
import ast
import json
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.integration.client.servers import KINDS, OURS
from tests.interop.apache import locked

FOLDER = Path(__file__).parent
SUITE = ("test_three_servers.py", "test_kill.py", "test_mixed_groups.py")
RESULTS = ROOT / "var" / "interop" / "client.json"
BEGIN = "<!-- three servers: written by `python -m tests.integration.client.matrix --write docs/guides/client.md` -->"
END = "<!-- end of three servers -->"

_TITLES = {OURS: "Skyrocket", **{version: f"Apache {version}" for version in KINDS[1:]}}


def note(item: pytest.Item, report: pytest.TestReport) -> None:
    """Keep the outcome of a test that runs once per server."""
    is_end = report.when == "call" or not report.passed  # a set-up that fails is the test's outcome as well
    if not is_end or item.path.name not in SUITE or not isinstance(item, pytest.Function):
        return
    parts = item.callspec.id.split("-") if hasattr(item, "callspec") else []
    server = next((part for part in parts if part in KINDS), None)
    if server is not None:
        details = [part for part in parts if part != server]
        name = item.originalname.removeprefix("test_").replace("_", " ")
        _keep(f"{name} ({', '.join(details)})" if details else name, server, report.outcome)


def _keep(row: str, server: str, outcome: str) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with locked(RESULTS.with_suffix(".lock")):
        results = recorded()
        results.setdefault(row, {})[server] = outcome
        RESULTS.write_text(json.dumps(results, indent=1))


def recorded() -> dict[str, dict[str, str]]:
    """What the last runs left: row → server → outcome."""
    if not RESULTS.exists():
        return {}
    results: dict[str, dict[str, str]] = json.loads(RESULTS.read_text())
    return results


def suite() -> list[str]:
    """The names of the suite's tests, in order."""
    return [
        node.name.removeprefix("test_").replace("_", " ")
        for file in SUITE
        for node in ast.parse((FOLDER / file).read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]


def table(results: dict[str, dict[str, str]]) -> str:
    """As Markdown."""
    lines = [f"| our client … | {' | '.join(_TITLES[kind] for kind in KINDS)} |", "|---" * (1 + len(KINDS)) + "|"]
    for name in suite():
        for row in [row for row in results if row.partition(" (")[0] == name] or [name]:
            outcomes = results.get(row, {})
            lines.append(f"| {row} | {' | '.join(outcomes.get(kind, 'not run') for kind in KINDS)} |")
    return "\n".join(lines) + "\n"


def written_into(page: str, new_table: str) -> str:
    """The page with its table replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{new_table}\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace the table in this page")
    page: Path | None = parser.parse_args().write
    made = table(recorded())
    sys.stdout.write(made)
    if page is not None:
        page.write_text(written_into(page.read_text(), made))


if __name__ == "__main__":
    main()
