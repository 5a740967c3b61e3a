"""The table of docs/client.md: what the suite has, nothing failed or left out."""

import ast
from pathlib import Path

import pytest

from tests.client.matrix import BEGIN, END, table, written_into

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "client.md"
SUITE = ("test_three_servers.py", "test_kill.py", "test_mixed_groups.py")


def _rows() -> dict[str, list[str]]:
    text = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    return {row: outcomes for row, *outcomes in cells[1:]}


def test_the_page_has_every_test_of_the_suite_and_all_passed() -> None:
    names = [
        node.name.removeprefix("test_").replace("_", " ")
        for file in SUITE
        for node in ast.parse((FOLDER / file).read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    shown = _rows()
    assert list(dict.fromkeys(row.partition(" (")[0] for row in shown)) == names
    assert all(outcomes == ["passed", "passed", "passed"] for outcomes in shown.values()), shown


def test_the_table_shows_what_ran_and_what_did_not() -> None:
    lines = table({"every way to send": {"skyrocket": "passed", "4.9.7": "failed"}}).splitlines()
    assert lines[0] == "| our client … | Skyrocket | Apache 5.4.0 | Apache 4.9.7 |"
    assert lines[2] == "| every way to send | passed | not run | failed |"


def test_only_the_table_of_a_page_is_replaced() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert written_into(page, "new\n") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    with pytest.raises(ValueError, match="the page lacks the lines"):
        written_into("nothing", "new")
