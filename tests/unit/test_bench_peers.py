"""The comparison with other systems: ratios against targets, results kept and rendered."""

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from bench.load.server_usage import Memory
from bench.peers import report
from bench.peers.comparison import ServerResult, Wanted, WithSlave, compare, compare_pairs
from bench.peers.other_system import OtherResult, ToolFailed
from bench.peers.processes import run_watched
from bench.peers.raw_pulls import RAW_PULLS
from bench.peers.rocketmq_client import ClientFailed, Measured, Phase, follow
from bench.replication.servers import ALONE, ASYNC, SYNC

from tests import ROOT

PHASE = Phase(messages=1000, seconds=2.0, errors=0, server_cpu_s=0.05, p50_ms=1.0, p99_ms=4.0, p999_ms=9.0)
APACHE = ServerResult(
    "Apache RocketMQ 5.4.0",
    6.0,
    Memory(300_000_000, 400_000_000),
    Measured(dict.fromkeys(("send", "consume", "batch", RAW_PULLS), PHASE), Memory(400_000_000, 500_000_000)),
)
PAIR = {
    ALONE: WithSlave(40_000.0, 1.0, 2.0, 20.0, None),
    ASYNC: WithSlave(36_000.0, 0.9, 2.0, 21.0, 6.0),
    SYNC: WithSlave(18_000.0, 0.45, 4.0, 30.0, 9.0),
}
OTHER = OtherResult("Redis", "in memory", "its tool", 10.0, 2.0, None, None, None, None, 1.0, 2.0, 0.1)


def faster(factor: float) -> ServerResult:
    """The same server with all rates higher and all costs lower by this factor."""
    phase = replace(PHASE, seconds=2.0 / factor, server_cpu_s=0.05 / factor, p50_ms=1.0 / factor, p99_ms=4.0 / factor)
    memory = Memory(int(300_000_000 / factor), 1)
    return ServerResult(
        "Skyrocket", 6.0 / factor, memory, Measured(dict.fromkeys(APACHE.measured.phases, phase), memory)
    )


def test_a_target_is_met_at_its_bound_and_missed_beyond() -> None:
    assert Wanted(at_least=1.3).met(1.3)
    assert not Wanted(at_least=1.3).met(1.29)
    assert Wanted(at_most=0.25).met(0.25)
    assert not Wanted(at_most=0.25).met(0.26)


def test_every_target_is_judged_by_ours_in_apaches() -> None:
    assert {line.met for line in compare([APACHE], [faster(6.0)])} == {True, None}
    equal = {line.measure.name: line.met for line in compare([APACHE], [APACHE])}
    assert equal["batches of 16: rate"] is True
    assert equal["push consumer: rate"] is False
    assert equal["send, 128-byte messages: rate"] is False
    assert equal["private memory, idle"] is False
    assert equal["time to ready"] is False
    assert {line.met for line in compare([], [APACHE])} == {None}


def test_servers_that_took_turns_are_judged_by_the_median_of_their_rounds_and_each_round_is_told() -> None:
    run = report.this_run("some settings")
    run.apache, run.ours = [APACHE] * 3, [faster(3.0), faster(1.5), faster(2.5)]
    sends = compare(run.apache, run.ours)[0]
    assert (sends.ratio, sends.met) == (2.5, True)
    assert sends.ratios == [3.0, 1.5, 2.5]
    assert "| 1,250 msg/s | 2.50 × | 3.00, 1.50, 2.50 | ≥ 1.6 × (goal 2) | yes |" in report.markdown(run)


def test_pairs_are_judged_by_what_a_slave_leaves_of_the_rate_and_by_apaches_synchronous_pair() -> None:
    judged = [(line.measure.name, line.met) for line in compare_pairs(PAIR, PAIR) if line.met is not None]
    assert judged == [
        ("– of the master alone", True),
        ("raw sends, synchronous slave: rate", True),
        ("– of the master alone", False),
    ]
    assert {line.met for line in compare_pairs(PAIR, {})} == {None}
    run = report.this_run("some settings")
    run.apache_pair, run.our_pair = PAIR, PAIR
    assert "| – of the master alone | 0.45 × | 0.45 × | 1.00 × |  | ≥ 0.5 × | no |" in report.markdown(run)


def test_a_run_is_kept_whole_and_its_tables_replace_only_what_stands_between_their_marks(tmp_path: Path) -> None:
    run = report.this_run("some settings")
    run.apache, run.ours, run.others, run.left_out = [APACHE], [faster(2.0)], [OTHER], {"NATS": "no Go"}
    run.our_pair = PAIR
    run.save(tmp_path / "run.json")
    assert report.Run.load(tmp_path / "run.json") == run
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    for _ in range(2):
        report.write_docs(page, report.Run.load(tmp_path / "run.json"))
    text = page.read_text()
    assert text.startswith(f"before\n{report.BEGIN}\nRun of ")
    assert text.endswith(f"{report.END}\nafter\n")
    assert "old" not in text
    assert "| send, 128-byte messages: rate | 500 msg/s | 1,000 msg/s | 2.00 × |  | ≥ 1.6 × (goal 2) | yes |" in text
    assert "NATS left out: no Go" in text


def test_the_documentation_has_the_place_for_the_tables() -> None:
    page = ROOT / "docs" / "internals" / "performance.md"
    assert page.read_text().count(report.BEGIN) == page.read_text().count(report.END) == 1


def test_the_clients_words_become_measured_phases() -> None:
    result = r"{\"messages\": 7, \"seconds\": 0.5, \"errors\": 1}"
    script = f"""
import sys, time
for line in ('begin warm-up', 'end warm-up {{}}', 'begin send'):
    print(line, flush=True)
sys.stdout.write('end se'); sys.stdout.flush(); time.sleep(0.05)
print("nd {result}", flush=True)
"""
    with Popen([sys.executable, "-c", script], stdout=PIPE) as process:
        measured = follow(process, [os.getpid()], silence_s=30.0)
    assert list(measured.phases) == ["send"]
    phase = measured.phases["send"]
    assert (phase.messages, phase.rate, phase.errors) == (7, 14.0, 1)


def test_a_silent_client_and_a_failing_tool_are_told(tmp_path: Path) -> None:
    with Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdout=PIPE) as process:
        with pytest.raises(ClientFailed, match="said nothing"):
            follow(process, [process.pid], silence_s=0.0)
        process.kill()
    with pytest.raises(ToolFailed, match=r"exit code 3.*no server"):
        run_watched([sys.executable, "-c", "print('no server'); raise SystemExit(3)"], [], tmp_path, 20.0)


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_headline_figures_of_a_readme_are_those_of_the_page(name: str) -> None:
    page = (ROOT / "docs" / "internals" / "performance.md").read_text(encoding="utf-8")
    measured = page.partition(report.BEGIN)[2].partition(report.END)[0]
    readme = (ROOT / name).read_text(encoding="utf-8")
    rows = [line.split("|")[2:4] for line in readme.splitlines() if re.search(r"\| [\d.]+ × \|$", line)]
    figures = [cell.split()[0] for row in rows for cell in row]
    assert len(figures) == 14
    assert [figure for figure in figures if f"| {figure} " not in measured] == []
