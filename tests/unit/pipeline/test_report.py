"""The report of a job: on the terminal, as Parquet, as a page and as JSON."""

import html
import io
import json
import re
import threading
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from rich.progress import Progress

from skyrocket.errors import ConfigError
from skyrocket.pipeline.report import Plot, Report, past_runs, phase
from skyrocket.pipeline.report.cells import cell_text
from skyrocket.pipeline.report.progress import StageState, StageWatcher, stage_progress
from skyrocket.pipeline.report.words import counted
from skyrocket.testing.clock import FakeClock
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)  # the first plot of a process loads matplotlib, perhaps on a busy machine

NASTY = "<script>alert('x')</script> & \x1b[31mred"


def _report(findings: int = 2) -> Report:
    tables = {
        "groups": pa.table({"group": ["Billing", NASTY], "messages": [1_234_567, 0], "seconds": [1.5, None]}),
        "nothing_here": pa.table({"group": pa.array([], pa.string())}),
    }
    plots = [
        Plot("Backlog <over> time", "line", ["10:00", "10:01"], {"a & b": [1.0, float("nan")], "$c$": [0.0, 3.0]}, "s"),
        Plot("By cause", "bar", ["one", "two", NASTY], {"letters": [1.0, 2.0, 3.0]}, "letters"),
    ]
    return Report("Backlog", tables, plots, findings, ["a note"], {"counts": {"stuck": 2}})


def _printed(report: Report) -> str:
    text = io.StringIO()
    report.print(Console(file=text, width=160))
    return text.getvalue()


def test_a_report_prints_its_tables_notes_and_verdict() -> None:
    text = _printed(_report())
    assert "1,234,567" in text
    assert "nothing here: none" in text
    assert "a note" in text
    assert "2 findings" in text
    assert "\x1b[31m" not in text, "what a message brings must not colour the terminal"
    assert "no findings" in _printed(_report(findings=0))


def test_a_long_table_is_cut_on_the_screen_and_whole_in_parquet(tmp_path: Path) -> None:
    report = Report("Long", {"rows": pa.table({"n": list(range(1000))})})
    assert "980 more rows" in _printed(report)
    report.write(tmp_path)
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == 1000
    assert "500 more rows are in rows.parquet" in (tmp_path / "report.html").read_text()


class _Elements(HTMLParser):
    """Which elements a page has, whether they are closed, and what they load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.loaded += [value or "" for name, value in attrs if name == "src" or (tag == "link" and name == "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_from_elsewhere_and_escapes_what_messages_bring(tmp_path: Path) -> None:
    _report().write(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    elements = _Elements()
    elements.feed(page)
    assert elements.open == []
    assert "script" not in elements.seen
    assert elements.loaded == []
    assert elements.seen.count("svg") == 2
    assert "&lt;script&gt;" in page
    assert "currentColor" in page, "plots take the page's colour, light or dark"
    assert "prefers-color-scheme: dark" in page
    assert "2 findings" in page


def test_pages_of_earlier_runs_stay_and_are_listed_newest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_runs, "KEPT", 3)
    for findings in (0, 1, 2, 3):
        moment = datetime(2026, 1, 31, 12, 0, findings, tzinfo=UTC)
        past_runs.remember(tmp_path, f"page {findings}", f"{NASTY} {findings}", findings, moment)
    listed = (tmp_path / "runs.html").read_text()
    names = re.findall(r'href="(runs/[^"]+)"', listed)
    assert [(tmp_path / name).read_text() for name in names] == ["page 3", "page 2", "page 1"]
    assert "3 findings" in listed
    assert "1 finding<" in listed
    assert "<script>" not in listed
    assert len(list((tmp_path / "runs").iterdir())) == 6, "what is not listed is not kept"


def test_long_names_of_bars_are_whole_and_have_lines_of_their_own() -> None:
    names = [f"Billing: OutOfStock: article {n} of the shop is gone" for n in range(3)]
    svg = Plot("By cause", "bar", names, {"letters": [3.0, 2.0, 1.0]}, "letters").svg()
    heights = {}
    for name in names:
        found = re.search(rf'<text[^>]*translate\(([\d.]+) ([\d.]+)\)[^>]*>{name}</text>|y="([\d.]+)"[^>]*>{name}', svg)
        assert found is not None, "in full"
        heights[name] = float(found[2] or found[3])
    assert sorted(heights, key=heights.__getitem__) == names, "one below the other, the first on top"


def test_a_traceback_is_whole_on_the_page_and_shows_its_end_on_the_terminal(tmp_path: Path) -> None:
    frames = "".join(f'  File "framework_{n}.py", line 1, in call\n    call()\n' for n in range(30))
    raised = '  File "shop.py", line 7, in bill\n    x\nshop.OutOfStock: <no> tea\n'
    text = f"Traceback (most recent call last):\n{frames}{raised}"
    report = Report("Letters", {"samples": pa.table({"traceback": [text]})})
    report.write(tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert html.escape(text) in page
    assert "<summary>shop.OutOfStock: &lt;no&gt; tea</summary>" in page
    assert cell_text(text).endswith('File "shop.py", line 7, in bill x shop.OutOfStock: <no> tea')


@pytest.mark.parametrize(("values", "ticks"), [([1.0, 3.0], "whole"), ([0.25, 0.5], "parts"), ([1.0], "whole")])
def test_counts_have_whole_numbers_beside_them(values: list[float], ticks: str) -> None:
    names = [f"cause {n}" for n in range(len(values))]
    svg = Plot("By cause", "bar", names, {"letters": values}, "letters").svg()
    labels = re.findall(r"<text[^>]*>([\d.,]+)</text>", svg)
    assert labels
    assert all("." not in label for label in labels) == (ticks == "whole")


@pytest.mark.parametrize(
    ("count", "text"), [(0, "no findings"), (1, "1 finding"), (2, "2 findings"), (1234, "1,234 findings")]
)
def test_one_is_not_many(count: int, text: str) -> None:
    assert counted(count, "finding") == text


def test_without_a_terminal_a_phase_is_a_line_at_its_beginning_and_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    with phase("lag", "Spark starts", "Spark is ready", terminal=False, clock=clock):
        assert capsys.readouterr().err == "lag: Spark starts …\n"
        clock.advance(seconds=6.25)
    assert capsys.readouterr() == ("", "lag: Spark is ready after 6.2 s\n")
    with pytest.raises(ConfigError), phase("lag", "Spark starts", "Spark is ready", terminal=False):
        raise ConfigError("no Java")
    assert "ready" not in capsys.readouterr().err


def test_what_is_written_is_the_same_in_every_run_but_for_the_time(tmp_path: Path) -> None:
    assert _report().plots[0].svg() == _report().plots[0].svg()
    for _ in range(2):
        _report().write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "groups.parquet",
        "nothing_here.parquet",
        "report.html",
        "report.json",
        "runs",
        "runs.html",
    ]
    summary = json.loads((tmp_path / "report.json").read_text())
    assert summary["findings"] == 2
    assert summary["counts"] == {"stuck": 2}
    assert summary["tables"]["groups"] == {
        "file": "groups.parquet",
        "rows": 2,
        "columns": ["group", "messages", "seconds"],
    }
    assert summary["rows"]["groups"][0] == {"group": "Billing", "messages": 1_234_567, "seconds": 1.5}


def test_a_report_that_cannot_be_written_says_where_and_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match=r"cannot be written to .*file.*choose another --out"):
        _report().write(tmp_path / "file")


def test_a_plot_and_a_report_check_what_they_are_made_of() -> None:
    with pytest.raises(ValueError, match="'b' has 1 values for 2 x"):
        Plot("p", "line", [1, 2], {"b": [1.0]}, "s")
    with pytest.raises(ValueError, match="name of a file"):
        Report("r", {"../evil": pa.table({"a": [1]})})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (True, "yes"),
        (1234, "1,234"),
        (0.1234, "0.123"),
        (1234.567, "1,234.57"),
        (float("nan"), "nan"),
        (b"caf\xc3\xa9 \xff", "café \\xff"),
        ("two\nlines", "two lines"),
        ("x" * 300, "x" * 199 + "…"),
        (list(range(7)), "0, 1, 2, 3, 4, … 2 more"),
        ({"a": 1}, "a=1"),
        (datetime(2026, 1, 31, 12, 0, 0, 250_000, UTC), "2026-01-31 12:00:00.250+00:00"),
    ],
)
def test_a_cell_is_one_short_line(value: object, text: str) -> None:
    assert cell_text(value) == text


def is_watching() -> bool:
    return any(thread.name == "spark-stage-progress" for thread in threading.enumerate())


def test_the_progress_bar_follows_the_stages_and_ends_with_its_owner() -> None:
    with Progress(console=Console(file=io.StringIO())) as bar:
        watcher = StageWatcher(bar, "lag", list)
        watcher.show([StageState(1, "load", 10, 4, 0), StageState(2, "count", 5, 1, 1)])
        (task,) = bar.tasks
        assert (task.total, task.completed, task.description) == (15, 5, "lag: load (1 task failed)")
        watcher.start()
        watcher.stop()
        assert not is_watching()


def test_a_session_that_fails_under_the_progress_bar_does_not_break_the_job() -> None:
    def gone() -> list[StageState]:
        raise RuntimeError("the session was stopped")

    with Progress(console=Console(file=io.StringIO())) as bar:
        watcher = StageWatcher(bar, "lag", gone)
        watcher.start()
        wait_until(lambda: not is_watching())
        watcher.stop()


def test_without_a_terminal_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    threads = threading.active_count()
    with stage_progress(None, "lag", terminal=False):  # type: ignore[arg-type]  # it is not even asked
        assert threading.active_count() == threads
    assert capsys.readouterr() == ("", "")
