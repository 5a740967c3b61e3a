"""The guard of the speed: which costs count as worse. That it runs is shown in tests/integration."""

from pathlib import Path

import pytest
from bench.guard import record
from bench.guard.record import Compared, Verdict, best_of, compare, middle_of


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        (2.0, 2.0, Verdict.AS_BEFORE),
        (2.0, 2.29, Verdict.AS_BEFORE),
        (2.0, 2.31, Verdict.WORSE),
        (2.0, 1.75, Verdict.AS_BEFORE),
        (2.0, 1.7, Verdict.BETTER),
        (None, 1.0, Verdict.NEW),
        (1.0, None, Verdict.GONE),
    ],
)
def test_a_cost_that_grew_by_more_than_15_percent_is_worse(
    before: float | None, now: float | None, verdict: Verdict
) -> None:
    assert Compared("row", before, now).verdict is verdict


def test_what_is_worse_or_no_longer_measured_fails() -> None:
    assert {verdict for verdict in Verdict if verdict.fails} == {Verdict.WORSE, Verdict.GONE}


def test_only_rows_of_the_chosen_families_are_compared() -> None:
    compared = compare({"store: a": 1.0, "broker: b": 2.0}, {"store: a": 1.1, "store: new": 3.0}, ["store"])
    assert [(row.name, row.verdict) for row in compared] == [
        ("store: a", Verdict.AS_BEFORE),
        ("store: new", Verdict.NEW),
    ]


def test_the_cheaper_of_two_runs_counts() -> None:
    assert best_of({"a": 1.0, "b": 3.0}, {"a": 2.0, "b": 2.0}) == {"a": 1.0, "b": 2.0}


def test_the_middle_of_several_runs_is_recorded() -> None:
    runs = [{"store: a": 1.0, "store: b": 9.0}, {"store: a": 3.0, "store: b": 7.0}, {"store: a": 2.0, "store: b": 8.0}]
    assert middle_of(runs) == {"store: a": 2.0, "store: b": 8.0}


def test_what_was_recorded_is_read_again(tmp_path: Path) -> None:
    record.write(tmp_path / "costs.json", {"store: a": 1.23456})
    assert record.read(tmp_path / "costs.json").rows == {"store: a": 1.235}


def test_without_a_record_the_next_step_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"--record"):
        record.read(tmp_path / "none.json")
