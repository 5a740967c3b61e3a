"""docs/internals/interop.md shows what the suite has: its clients, scenarios and verbs, nothing failed or left out."""

import pytest

from tests import ROOT
from tests.interop.admin_verbs import NOT_YET as VERBS_NOT_YET
from tests.interop.admin_verbs import VERBS
from tests.interop.apache import VERSIONS
from tests.interop.matrix import (
    BEGIN,
    END,
    FAIL,
    NONE,
    PASS,
    Cell,
    admin_rows,
    admin_table,
    columns,
    rows,
    table,
    written_into,
)
from tests.interop.scenarios import SCENARIOS, average_share

PAGE = ROOT / "docs" / "internals" / "interop.md"


def _cells(name: str) -> list[list[str]]:
    text = PAGE.read_text().partition(BEGIN.format(name))[2].partition(END.format(name))[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("|---")]


def test_the_page_has_the_suites_clients_and_scenarios() -> None:
    head, *body = _cells("matrix")
    assert head[1:] == columns()
    assert [line[0] for line in body] == rows()


def test_the_page_has_the_suites_verbs() -> None:
    head, *body = _cells("verbs")
    assert head[1:] == [f"mqadmin {version}" for version in VERSIONS]
    assert [line[0] for line in body] == admin_rows()


@pytest.mark.parametrize("name", ["matrix", "verbs"])
def test_every_cell_of_the_page_passes_or_says_why_it_is_empty(name: str) -> None:
    for row, *cells in _cells(name)[1:]:
        for cell in cells:
            if row in VERBS_NOT_YET:
                assert cell == VERBS_NOT_YET[row]
            else:
                assert cell.startswith((PASS, NONE, "not yet", "mqadmin has none")), (row, cell)
                assert not (row in SCENARIOS and cell == "not yet"), row


def test_the_matrix_shows_outcomes_and_numbers_the_reasons() -> None:
    first, second = rows()[:2]
    client, other = columns()[:2]
    shown = table({client: {first: Cell(PASS), second: Cell(NONE, "too old")}, other: {first: Cell(FAIL, "lost one")}})
    lines = shown.splitlines()
    assert lines[2].startswith(f"| {first} | {PASS} | {FAIL} | not run |")
    assert lines[3].startswith(f"| {second} | {NONE} (1) | not run |")
    assert lines[-1] == f"1. {client}: too old."


def test_a_verb_passes_only_when_all_its_commands_do() -> None:
    numbers = [number for number, verb in enumerate(VERBS) if verb.name == "topicRoute" and not verb.only]
    kept = {f"topicRoute {number}": Cell(PASS) for number in numbers}

    def cell(results: dict[str, Cell]) -> str:
        lines = admin_table({"mqadmin-4.9.7": results}).splitlines()
        return next(line for line in lines if line.startswith("| topicRoute ")).split(" | ")[-1]

    assert cell(kept) == f"{PASS} |"
    assert cell({**kept, f"topicRoute {numbers[-1]}": Cell(FAIL)}) == f"{FAIL} |"
    assert cell({}) == "not run |"


def test_a_table_is_replaced_and_the_rest_of_the_page_stays() -> None:
    page = f"before\n{BEGIN.format('matrix')}\nold\n{END.format('matrix')}\nafter\n"
    new = written_into(page, "matrix", "new\n")
    assert (new.startswith("before\n"), new.endswith("\nafter\n")) == (True, True)
    assert ("new" in new, "old" in new) == (True, False)
    with pytest.raises(ValueError, match="lacks the lines"):
        written_into("no marks", "matrix", "new")


@pytest.mark.parametrize(("queues", "sizes"), [(8, [8]), (8, [3, 3, 2]), (8, [4, 4]), (5, [3, 2]), (1, [1, 0])])
def test_the_average_allocation_gives_neighbours_and_the_rest_to_the_first(queues: int, sizes: list[int]) -> None:
    shares = [average_share(queues, len(sizes), index) for index in range(len(sizes))]
    assert [len(share) for share in shares] == sizes
    assert [queue for share in shares for queue in sorted(share)] == list(range(queues))
