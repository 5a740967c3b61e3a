"""Reports of queries as texts, also when a stranger has written them."""

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from skyrocket.model.query_report import QueryReport, group_of, key_of, report_of

REPORT = QueryReport(
    name="revenue ▸ lake",
    query_id="5f1c",
    run_id="77aa",
    state="running",
    batch=12,
    rows_per_second=1234.5,
    sink="FileSink[/lake]",
    url="http://127.0.0.1:4040/StreamingQuery/statistics?id=77aa",
    reported_ms=1_700_000_000_000,
)


def changed(**fields: Any) -> str:
    return json.dumps({**asdict(REPORT), **fields})


def test_a_report_is_read_as_it_was_written() -> None:
    assert report_of(REPORT.text()) == REPORT
    first = replace(REPORT, batch=None, rows_per_second=None, name="", url="")
    assert report_of(first.text()) == first


def test_a_report_stays_small_however_long_its_words_are() -> None:
    long = replace(REPORT, name="汉" * 10_000, sink="s" * 10_000, url="u" * 10_000)
    kept = report_of(long.text())
    assert kept is not None
    assert len(long.text().encode()) < 2000
    assert (len(kept.name), len(kept.sink), len(kept.url)) == (120, 200, 500)
    assert len(key_of("g", "q" * 10_000)) == 250


def test_the_key_says_the_group_also_with_a_namespace_and_a_strange_name() -> None:
    assert group_of(key_of("shop%billing|eu", "a/b/c")) == "shop%billing|eu"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("{", id="half"),
        pytest.param("[" * 8000, id="deep"),
        pytest.param("[]", id="a list"),
        pytest.param("{}", id="empty"),
        pytest.param("1" * 8000, id="a long number"),
        pytest.param(changed(name="x" * 9000), id="long"),
        pytest.param(changed(state="<b>"), id="another state"),
        pytest.param(changed(state=["running"]), id="a state that is a list"),
        pytest.param(changed(name=None), id="no name"),
        pytest.param(changed(sink={"a": 1}), id="a sink that is no text"),
        pytest.param(changed(url="\ud800"), id="half a pair of surrogates"),
        pytest.param(changed(reported_ms="now"), id="no time"),
        pytest.param(changed(reported_ms=-1), id="a time before all"),
        pytest.param(changed(reported_ms=True), id="true"),
    ],
)
def test_what_is_no_report_is_none(text: str) -> None:
    assert report_of(text) is None


@pytest.mark.parametrize("number", [-1, "7", 1.5, 1 << 60, True, [], float("nan"), float("inf")])
def test_a_number_that_cannot_be_is_left_out(number: object) -> None:
    kept = report_of(changed(batch=number, rows_per_second=number if number != 1.5 else -1.5))
    assert kept is not None
    assert (kept.batch, kept.rows_per_second) == (None, None)
