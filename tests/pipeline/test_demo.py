"""`skyrocket demo`, as a user starts it."""

import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

from skyrocket.pipeline.demo.orders import orders
from skyrocket.pipeline.demo.page import Minute, page

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
    assert "250 orders sent, 1 minutes finished" in text
    assert "<svg" not in page([], sent=0)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("end", ["seconds", "signal"])
def test_the_demo_shows_revenue_and_ends_cleanly(tmp_path: Path, end: str) -> None:
    command = [sys.executable, "-m", "skyrocket", "demo", "--out", str(tmp_path / "demo")]
    command += ["--seconds", "1"] if end == "seconds" else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            shown = [running.stdout.readline() for _ in range(2)]
            if end == "signal":
                running.send_signal(signal.SIGTERM)
            rest, _ = running.communicate(timeout=PATIENCE_SECONDS)
        finally:
            running.kill()
    assert running.returncode == 0, rest
    assert shown[0].startswith("The page with the plot: ")
    assert re.match(r"2026-01-31T08:\d\d orders=\d+ revenue=[\d.]+", shown[1])
    assert "<svg" in (tmp_path / "demo" / "revenue.html").read_text()
    assert not (tmp_path / "demo" / "store" / "abort").exists()  # the server has stopped in order
    assert "revenue has stopped" in (tmp_path / "demo" / "pipeline.log").read_text()
