"""The suites: which tests belong together, and one table of how they went.

python -m tests.suites faults-store       runs one or several; `make faults-store` does the same
python -m tests.suites --all              runs all, one after the other (`make long`): hours
python -m tests.suites --table            prints how the newest run of each went

Each run that comes to its end is kept in var/suites. `--all` leaves out what has passed at this very commit, so that it
can be stopped and started again; with changed files, or with --again, everything runs.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from rich.console import Console
from rich.table import Table

from tests import ROOT
from tests.outcomes import Outcome, SuiteRun, read_runs, version

JOBS = os.environ.get("JOBS") or "2"
# Neighbours stay with one worker, for what they share; a worker that has finished takes tests of the other.
PARALLEL = ("-n", JOBS, "--dist", "worksteal")
# Quick tests wait for programs, disks and ticks about as long as they compute: one worker more keeps the cores busy.
QUICK = ("-n", str(int(JOBS) + 1) if JOBS.isdecimal() else JOBS, "--dist", "worksteal")
LONGEST_PART_SECONDS = 20 * 60
THOROUGH = ("--hypothesis-profile=thorough",)


@dataclass(frozen=True)
class Suite:
    """Paths and options for pytest. `stale` is removed first; `report` is a module that prints more afterwards."""

    name: str
    shows: str
    paths: tuple[str, ...]
    options: tuple[str, ...] = PARALLEL
    stale: str | None = None
    report: str | None = None


def _faults(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/faults/test_{name}.py" for name in names)


_BENCHMARKS = ("tests/integration/test_bench_runs.py", "tests/integration/test_bench_replication_runs.py")
_OUTSIDE = tuple(
    f"tests/pipeline/test_{name}.py"
    for name in ("topic_sink_kills", "topic_sink_s3", "s3a", "hdfs", "lake_remote", "orchestration")
)
_LIBRARIES = ("tests/integration/test_celery.py", "tests/integration/test_faststream.py")
_CLIENT = ("three_servers", "kill", "mixed_groups", "terminal")

# The parts of the fault suite are cut so that each ends within 20 minutes on two quiet cores.
SUITES = (
    Suite("test", "every test but the long modes", ("tests",), (*QUICK, "-m", "not slow")),
    Suite(
        "faults-store",
        "a crash, and an error, at every operation of the disk; a disk that fills up at every point",
        _faults("every_operation", "full_disk", "failed_fsync"),
    ),
    Suite(
        "faults-flips",
        "flipped bits in every kind of file, logs cut at every byte, power cuts, writers killed in a loop",
        _faults("bit_flips", "torn_tail", "power_cut", "kill"),
    ),
    Suite(
        "faults-damage",
        "damaged, lost and swapped files of both makers, 2,000 random harms",
        _faults("damaged_stores", "random_damage", "recovery_ways", "config_flips", "lost_files"),
    ),
    Suite(
        "faults-lives",
        "random lives of a store against a model; all tests of the store",
        (*_faults("random_operations"), "tests/unit/store"),
    ),
    Suite(
        "faults-broker",
        "brokers killed under load, disks that stand still; pop, timers and transactions against their models for long",
        _faults("broker_kill", "stalled_disk", "transaction_kill", "pop_machine", "timer_model"),
    ),
    Suite(
        "faults-attacks",
        "what a broker must survive, with an honest client beside it that is served within 200 ms (huge batches: 800)",
        ("tests/attack",),
        (),  # one after the other: a neighbour would be measured too
    ),
    Suite(
        "faults-client",
        "clients whose broker is killed or restarted, exactly-once effects with many kills, what clients leave behind",
        ("tests/integration/client", "tests/integration/exactly_once", "tests/cluster/test_nothing_is_left.py"),
        (*PARALLEL, "-m", "not interop"),
    ),
    Suite(
        "faults-replication",
        "20,000 simulated lives of a master and its slaves; 200 faults of two processes; acting masters; copied logs",
        (
            "tests/unit/testing/test_simulation.py",
            "tests/cluster/replication",
            "tests/integration/test_acting_master_processes.py",
            *_faults("replicated_pair", "copied_logs"),
        ),
    ),
    Suite(
        "faults-failover",
        "simulated sets under controllers; masters killed under load; engines killed and paused; the compose file",
        (
            "tests/unit/controller",
            "tests/unit/testing/test_failover_simulation.py",
            "tests/cluster/controller",
            "tests/cluster/failover",
            "tests/integration/controller",
            "tests/integration/test_standalone_failover.py",
            "tests/integration/test_failover_compose_runs.py",
            "tests/integration/test_bench_failover_runs.py",
            *_faults("controllers", "failover"),
            "tests/interop/test_controller_answers.py",
            "tests/interop/test_apache_brokers_under_our_controller.py",
        ),
        ("-n", JOBS, "--dist", "loadscope"),  # a file's tests share one engine; classes are shared out one by one
    ),
    Suite(
        "faults-sets",
        "three brokers of ours under both makers' controllers: 50 masters killed under load of both makers' producers",
        ("tests/interop/failover/test_sets_of_ours.py",),
    ),
    Suite(
        "faults-sets-two",
        "the same with two brokers of ours and one of Apache's",
        ("tests/interop/failover/test_sets_with_two_of_ours.py",),
    ),
    Suite(
        "faults-sets-one",
        "the same with one broker of ours and two of Apache's; pairs of both makers",
        ("tests/interop/failover/test_sets_with_one_of_ours.py",),
    ),
    Suite(
        "faults-formats",
        "bytes, headers and JSON with many more random examples; two benchmarks as programs",
        ("tests/unit/format", "tests/unit/fastjson", "tests/unit/protocol", *_BENCHMARKS),
        (*PARALLEL, *THOROUGH),
    ),
    Suite(
        "interop",
        "RocketMQ's clients, tools, brokers and stores with ours",
        ("tests/interop",),
        # A file's tests share one server of Java's.
        ("-n", JOBS, "--dist", "loadfile", "--ignore", "tests/interop/pairs", "--ignore", "tests/interop/failover"),
        report="tests.interop.matrix",
    ),
    Suite(
        "interop-pairs",
        "masters and slaves of both makers: 200,000 messages of all kinds, each side killed and restarted, equal logs",
        ("tests/interop/pairs",),
        (),
    ),
    Suite(
        "interop-client",
        "our client with Skyrocket and Apache RocketMQ",
        tuple(f"tests/integration/client/test_{name}.py" for name in _CLIENT),
        (),
        stale="var/interop/client.json",
        report="tests.integration.client.matrix",
    ),
    Suite(
        "console-pages",
        "the pages of the console in Chromium: create, send, find, follow, reset, resend, commit, change; doctor",
        ("tests/integration/console", "tests/cluster/console", "tests/unit/console", "tests/cluster/doctor"),
        (),
    ),
    Suite(
        "deploy-files",
        "deploy/ as others read it: Helm, Kubernetes' and Grafana's schemas, Prometheus with all servers, systemd",
        (
            "tests/interop/deploy",  # first: it builds Helm
            "tests/unit/cli/test_helm_chart.py",
            "tests/unit/cli/test_systemd_units.py",
            "tests/cluster/test_dashboards.py",
            "tests/integration/test_prometheus.py",
        ),
        (),
    ),
    Suite(
        "pipelines",
        "Spark: kills, clusters, five million messages, Apache RocketMQ",
        ("tests/pipeline",),
        tuple(option for path in _OUTSIDE for option in ("--ignore", path)),
    ),
    Suite(
        "pipelines-outside",
        "the sink exactly once through twenty kills; on S3 and HDFS; Dagster, Airflow, Celery, FastStream",
        (*_OUTSIDE, *_LIBRARIES),
        (),
    ),
)


def run(suite: Suite) -> int:
    """pytest's exit code; what became of each test is in var/suites afterwards."""
    if suite.stale is not None:
        (ROOT / suite.stale).unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", *suite.options, "--record", suite.name, *suite.paths]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if suite.report is not None:
        subprocess.run([sys.executable, "-m", suite.report], cwd=ROOT, check=False)
    return status


def run_all(suites: Sequence[Suite], console: Console, *, again: bool) -> int:
    """One after the other, whatever becomes of those before; 1 when one did not pass."""
    statuses: list[int] = []
    now = version()
    try:
        for suite in suites:
            if not again and not now.endswith("+") and any(_stands(kept, suite, now) for kept in read_runs()):
                console.print(f"{suite.name}: has passed at {now}; --again runs it once more")
                continue
            console.rule(suite.name)
            statuses.append(run(suite))
    finally:
        console.print(table(suites, read_runs(), now))
    return int(any(statuses))


def _stands(kept: SuiteRun, suite: Suite, now: str) -> bool:
    return kept.suite == suite.name and kept.version == now and kept.passed


def table(suites: Sequence[Suite], runs: Sequence[SuiteRun], now: str) -> Table:
    """A row per suite: its result, how many tests, how long."""
    by_name = {kept.suite: kept for kept in runs}
    found = Table(title=f"Suites at {now}")
    for title in ("suite", "result", *(outcome.value for outcome in Outcome), "time", "at"):
        found.add_column(title, justify="left" if title in ("suite", "result", "at") else "right")
    for suite in suites:
        kept = by_name.get(suite.name)
        if kept is None:
            found.add_row(suite.name, "never ended")
            continue
        counts = [f"{kept.count(outcome):,}" for outcome in Outcome]
        result = "[green]passed[/]" if kept.passed else "[red]failed[/]"
        at = kept.version if kept.version == now else f"{kept.version}, an earlier state"
        time = str(timedelta(seconds=round(kept.seconds)))
        if suite.name.startswith("faults-") and kept.seconds > LONGEST_PART_SECONDS:
            time = f"[yellow]{time}, over {LONGEST_PART_SECONDS // 60} min[/]"
        found.add_row(suite.name, result, *counts, time, at)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named suites, or print the table."""
    names = [suite.name for suite in SUITES]
    parser = argparse.ArgumentParser(
        prog="python -m tests.suites", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"one of {', '.join(names)}")
    parser.add_argument("--all", action="store_true", help="run all that have not passed at this commit")
    parser.add_argument("--again", action="store_true", help="with --all: also those that have")
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.suites if name not in names]:
        parser.error(f"there is no suite {unknown[0]!r}; there are {', '.join(names)}")
    if not (options.suites or options.all or options.table):
        parser.error(f"name a suite: {', '.join(names)}; or give --all or --table")

    console = Console(highlight=False)
    if options.table:
        console.print(table(SUITES, read_runs(), version()))
        return 0
    if options.all:
        return run_all(SUITES, console, again=options.again)
    chosen = [suite for suite in SUITES if suite.name in options.suites]
    return run(chosen[0]) if len(chosen) == 1 else run_all(chosen, console, again=True)


if __name__ == "__main__":
    sys.exit(main())
