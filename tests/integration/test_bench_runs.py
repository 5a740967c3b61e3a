"""The benchmark is a program too: it must run and tell everything it promises. How fast it is, is not tested here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.slow

LINES = (
    "floor, 128-byte",
    "append + dispatch, 128-byte messages, in groups",
    "append + dispatch, 128-byte messages, one by one",
    "of it put in groups of 32, 128-byte",
    "of it dispatch to queues, 128-byte",
    "of it dispatch to index, 128-byte",
    "floor, 1 KiB",
    "append + dispatch, 1 KiB messages, in groups",
    "append + dispatch, 1 KiB messages, one by one",
    "queues, cost against 8 queues",
    "memcpy of the same bytes",
    "32-message slices of 1 KiB, one queue",
    "32-message slices of 1 KiB, 8 queues",
    "scan of a queue",
    "random reads of 4 KiB messages",
    "query by unique key",
    "query by key",
    "query offset by time",
    "one fsync per message",
    "64 threads wait for the disk",
    "64 writers of an event loop",
    "open after kill -9",
    "resident memory of an idle store",
)


def _bench(*arguments: str) -> str:
    command = [sys.executable, "-m", "bench.store", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Where a quick run wrote its results, and what it printed."""
    directory = tmp_path_factory.mktemp("bench")
    table = _bench("--quick", "--results", str(directory / "results"), "--work", str(directory / "work"))
    assert not list((directory / "work").iterdir()), "the stores of a run are removed"
    return directory / "results", table


def test_a_quick_run_prints_every_figure_with_its_target(results: tuple[Path, str]) -> None:
    _, table = results
    assert [line for line in LINES if line not in table] == []
    for target in ("≥ 0.25 ×", "≥ 0.50 ×", "≤ 10%", "≥ 8,000 msg/s", "≥ 20 ×", "≥ 600.0 MB/s", "≤ 150.0 MB"):
        assert target in table


def test_a_run_writes_json_lines_and_a_plot(results: tuple[Path, str]) -> None:
    directory, _ = results
    (lines,) = directory.glob("store-*.jsonl")
    first, *figures = (json.loads(line) for line in lines.read_text().splitlines())
    assert first["run"]["scale"] == "quick"
    assert all(line["figure"]["value"] > 0 for line in figures)
    assert len(figures) >= len(LINES)
    assert lines.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_the_newest_results_are_printed_again_as_markdown(results: tuple[Path, str]) -> None:
    directory, _ = results
    table = _bench("--last", "--markdown", "--results", str(directory))
    assert "| what | measured | ratio | target | met | spread |" in table
    assert [line for line in LINES if line not in table] == []


def test_the_guard_records_costs_and_finds_them_again(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded.json"
    command = [sys.executable, "-m", "bench.guard", "--short", "--recorded", str(recorded)]
    made = subprocess.run([*command, "--record"], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert made.returncode == 0, made.stderr
    record = json.loads(recorded.read_text())
    assert {name.partition(":")[0] for name in record["rows"]} == {"store", "broker", "client"}
    assert min(record["rows"].values()) > 0
    # Sends never cost as little as that: today's are worse.
    record["rows"]["broker: sends"] = 0.001
    recorded.write_text(json.dumps(record))
    compared = subprocess.run([*command, "broker"], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert compared.returncode == 1
    assert "broker: sends" in compared.stderr.splitlines()[-1]


def test_growth_is_measured_printed_and_drawn(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.growth", "--quick", "--results", str(tmp_path / "results")]
    command += ["--work", str(tmp_path / "work")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    # A busy machine may make so short a line steep; that is said, and nothing else fails.
    assert done.returncode == (1 if "WORSE THAN LINEAR" in done.stdout else 0), done.stderr
    (written,) = (tmp_path / "results").glob("growth-*.json")
    points = json.loads(written.read_text())["points"]
    assert {(point["of"], point["doing"], point["count"]) for point in points} == {
        ("topics", "sends", 10),
        ("topics", "sends", 100),
        ("connections", "sends", 10),
        ("connections", "sends", 100),
        ("messages in the store", "sends", 1_000),
        ("messages in the store", "sends", 20_000),
        ("messages in the store", "pulls", 1_000),
        ("messages in the store", "pulls", 20_000),
    }
    assert min(min(point["rate"], point["cpu_us"], point["memory_mb"]) for point in points) > 0
    assert "20,000 messages in the store: pulls" in done.stdout
    assert written.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert not list((tmp_path / "work").iterdir()), "the stores of a run are removed"
