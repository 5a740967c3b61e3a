"""The table of docs/guides/client.md: what the suite has, nothing failed or left out."""

import pytest

from tests import ROOT
from tests.integration.client.matrix import BEGIN, END, suite, table, written_into

PAGE = ROOT / "docs" / "guides" / "client.md"


def _rows() -> dict[str, list[str]]:
    text = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    return {row: outcomes for row, *outcomes in cells[1:]}


def test_the_page_has_every_test_of_the_suite_and_all_passed() -> None:
    shown = _rows()
    assert list(dict.fromkeys(row.partition(" (")[0] for row in shown)) == suite()
    assert all(outcomes == ["passed", "passed", "passed"] for outcomes in shown.values()), shown


def test_the_table_shows_what_ran_and_what_did_not() -> None:
    lines = table({"every way to send": {"skyrocket": "passed", "4.9.7": "failed"}}).splitlines()
    assert lines[0] == "| our client … | Skyrocket | Apache 5.4.0 | Apache 4.9.7 |"
    assert lines[2] == "| every way to send | passed | not run | failed |"
    assert {line.partition(" | ")[2] for line in lines[3:]} == {"not run | not run | not run |"}


def test_only_the_table_of_a_page_is_replaced() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert written_into(page, "new\n") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    with pytest.raises(ValueError, match="the page lacks the lines"):
        written_into("nothing", "new")
