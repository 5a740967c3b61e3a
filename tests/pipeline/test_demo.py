"""`skyrocket demo`, as a user starts it."""

import contextlib
import io
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest
from rich.console import Console

from skyrocket.cli.demo import Show
from skyrocket.pipeline.demo.orders import orders
from skyrocket.pipeline.demo.page import Minute, page
from tests.waiting import wait_until

PATIENCE_SECONDS = 840
START = datetime(2026, 1, 31, 8, tzinfo=UTC)


def test_made_up_orders_are_the_same_each_time_with_some_twice_and_some_broken() -> None:
    first, second = (list(islice(orders("orders", START, per_minute=100), 1000)) for _ in range(2))
    assert [message.body for message in first] == [message.body for message in second]
    ids = [message.keys for message in first]
    assert len(set(map(str, ids))) == len(ids) - 24
    assert sum(not message.body.endswith(b"}") for message in first) > 0


def test_the_page_shows_plot_and_last_minutes_and_loads_itself_again() -> None:
    told = {"minute": "2026-01-31T08:01:00.000Z", "orders": 99, "revenue": "120.50"}
    text = page([Minute.of(told)], sent=250)
    assert "<svg" in text
    assert 'http-equiv="refresh"' in text
    assert "<td>2026-01-31T08:01</td><td>99</td><td>120.50</td>" in text
    assert "250 orders sent, 1 minute finished" in text
    assert "<svg" not in page([], sent=0)
    assert "refresh" not in page([Minute.of(told)], sent=250, loads_again=False)


def test_without_a_terminal_each_minute_is_a_line_once_in_whatever_order_they_come(tmp_path: Path) -> None:
    text = io.StringIO()
    log = tmp_path / "pipeline.log"
    with contextlib.ExitStack() as stack:
        show = Show(tmp_path / "revenue.html", log, stack, Console(file=text, width=200))
        show.draw()
        log.write_text("WARNING: of Java\nrevenue: Spark starts on local[2] …\n")
        show.draw()
        for number in (3, 1, 1, 5, 2):
            show.add(Minute(f"2026-01-31T08:0{number}", 100, 12.5))
            show.draw()
        show.add(Minute("2026-01-31T08:04", 100, 12.5))
        show.finish()
    lines = text.getvalue().splitlines()
    assert sorted(re.findall(r"08:0\d", text.getvalue())) == [f"08:0{number}" for number in range(1, 6)]
    assert lines[1] == "· revenue: Spark starts on local[2] …"
    assert lines[-1] == f"no orders sent, 5 minutes of revenue. The page stays: {tmp_path / 'revenue.html'}"
    page_text = (tmp_path / "revenue.html").read_text()
    assert "refresh" not in page_text
    assert "5 minutes finished" in page_text


def test_on_a_terminal_a_line_says_what_it_waits_for_until_there_are_rows(tmp_path: Path) -> None:
    text = io.StringIO()
    log = tmp_path / "pipeline.log"
    with contextlib.ExitStack() as stack:
        show = Show(tmp_path / "revenue.html", log, stack, Console(file=text, width=100, force_terminal=True))
        log.write_text("revenue: Spark starts on local[2] …\n")
        show.sent = 1890
        show.draw()
        wait_until(lambda: "Spark" in text.getvalue(), "it is drawn")
        waiting = text.getvalue()
        show.add(Minute("2026-01-31T08:04", 100, 12.5))
        show.draw()
    assert "revenue: Spark starts on local[2] … 1,890 orders sent. Ctrl-C ends it." in waiting
    assert "minute" not in waiting, "no table without rows"
    assert "2026-01-31T08:04" in text.getvalue()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("end", ["seconds", "signal"])
def test_the_demo_shows_revenue_and_ends_cleanly(tmp_path: Path, end: str) -> None:
    command = [sys.executable, "-m", "skyrocket", "demo", "--out", str(tmp_path / "demo")]
    command += ["--seconds", "1"] if end == "seconds" else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            shown = [running.stdout.readline()]
            while not shown[-1].startswith("2026-01-31T08:"):
                shown.append(running.stdout.readline())
                assert shown[-1], "it ends after a result"
            if end == "signal":
                running.send_signal(signal.SIGTERM)
            rest = running.stdout.read()  # `communicate` passes over what `readline` has buffered
            running.wait(PATIENCE_SECONDS)
        finally:
            running.kill()
    assert running.returncode == 0, rest
    lines = [*shown, *rest.splitlines()]
    assert lines[0].startswith("The page with the plot: ")
    assert any("Spark is ready after" in line for line in lines)
    minutes = [found[1] for line in lines if (found := re.match(r"(\S+) orders=\d+ revenue=[\d.]+", line))]
    assert len(set(minutes)) == len(minutes), "none twice"
    assert f"{len(minutes)} minute" in lines[-1], "none is missing"
    assert "<svg" in (tmp_path / "demo" / "revenue.html").read_text()
    assert not (tmp_path / "demo" / "store" / "abort").exists()  # the server has stopped in order
    assert "revenue has stopped" in (tmp_path / "demo" / "pipeline.log").read_text()
