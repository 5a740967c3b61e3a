"""Run a scenario in worker processes and look at the server meanwhile."""

import contextlib
import itertools
import json
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.load import server_usage
from bench.load.connections import clock
from bench.load.scenario import Scenario
from bench.load.tally import Tally
from bench.load.worker import CONNECT_TIMEOUT_S, DRAIN_S

_ROOT = Path(__file__).parent.parent.parent  # from where `bench` can be imported
_GRACE_S = 10.0


class LoadFailed(Exception):
    """The load could not be made; says why."""


@dataclass(frozen=True)
class Figures:
    """The result of one scenario."""

    name: str
    seconds: float
    messages: int
    requests: int
    acknowledged: int
    rate: float  # messages per second
    p50_ms: float
    p99_ms: float
    p999_ms: float
    largest_ms: float
    server_cpu_us: float | None  # per message; None when the server's processes are not known
    server_cores: float | None  # how many cores it kept busy
    anonymous_mb: float | None
    private_mb: float | None
    load_cores: float  # what the load itself took: near one per process, the generator was the limit
    unanswered: int
    overdue: int
    errors: dict[str, int]


@dataclass(frozen=True)
class Timing:
    """Seconds before and in the measured window."""

    warm_up: float
    measured: float


def measure(scenario: Scenario, timing: Timing, processes: int, server_pids: Sequence[int]) -> Figures:
    """Load the server with a scenario; raises LoadFailed when that cannot be."""
    processes = min(processes, scenario.connections)
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(_worker(scenario, share)) for share in _shares(scenario.connections, processes)]
        for worker in workers:
            if _line_of(worker, CONNECT_TIMEOUT_S + _GRACE_S) != "ready":
                raise LoadFailed(f"no connection to {scenario.address[0]}:{scenario.address[1]}: {_complaint(worker)}")
        begin_at = clock() + timing.warm_up
        window = json.dumps({"begin_at": begin_at, "end_at": begin_at + timing.measured})
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write(window + "\n")
            worker.stdin.flush()
        pids = [worker.pid for worker in workers]
        time.sleep(max(begin_at - clock(), 0))
        server_before, load_before = server_usage.cpu_seconds(server_pids), server_usage.cpu_seconds(pids)
        time.sleep(max(begin_at + timing.measured - clock(), 0) * 0.9)
        used = server_usage.memory(server_pids)
        time.sleep(max(begin_at + timing.measured - clock(), 0))
        server_cpu = server_usage.cpu_seconds(server_pids) - server_before
        load_cpu = server_usage.cpu_seconds(pids) - load_before
        total = Tally()
        for worker in workers:
            line = _line_of(worker, DRAIN_S + _GRACE_S)
            if not line:
                raise LoadFailed(f"a worker failed: {_complaint(worker)}")
            total.merge(Tally.from_json(json.loads(line)))
    return _figures(scenario, timing.measured, total, server_cpu if server_pids else None, used, load_cpu)


def _figures(
    scenario: Scenario,
    seconds: float,
    total: Tally,
    server_cpu: float | None,
    used: server_usage.Memory,
    load_cpu: float,
) -> Figures:
    known = server_cpu is not None
    milliseconds = [total.latencies.percentile(percent) * 1e3 for percent in (50, 99, 99.9)]
    return Figures(
        name=scenario.name,
        seconds=seconds,
        messages=total.messages,
        requests=total.requests,
        acknowledged=total.acknowledged,
        rate=total.messages / seconds,
        p50_ms=milliseconds[0],
        p99_ms=milliseconds[1],
        p999_ms=milliseconds[2],
        largest_ms=total.latencies.largest * 1e3,
        server_cpu_us=server_cpu / total.messages * 1e6 if server_cpu is not None and total.messages else None,
        server_cores=server_cpu / seconds if server_cpu is not None else None,
        anonymous_mb=used.anonymous / 1e6 if known else None,
        private_mb=used.private / 1e6 if known else None,
        load_cores=load_cpu / seconds,
        unanswered=total.unanswered,
        overdue=total.overdue,
        errors=dict(total.errors),
    )


def _shares(connections: int, processes: int) -> list[dict[str, int]]:
    bounds = [connections * number // processes for number in range(processes + 1)]
    return [{"first": first, "count": end - first} for first, end in itertools.pairwise(bounds)]


@contextlib.contextmanager
def _worker(scenario: Scenario, share: dict[str, int]) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.load.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=_ROOT,
    )
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"scenario": asdict(scenario), "share": share}) + "\n")
        process.stdin.flush()
        yield process
    finally:
        process.kill()
        process.communicate()


def _line_of(worker: "subprocess.Popen[str]", timeout_s: float) -> str:
    """The worker's next line; empty when it ended."""
    assert worker.stdout is not None
    if not select.select([worker.stdout], [], [], timeout_s)[0]:
        raise LoadFailed(f"a worker said nothing for {timeout_s:.0f} s")
    return worker.stdout.readline().strip()


def _complaint(worker: "subprocess.Popen[str]") -> str:
    worker.kill()
    lines = worker.communicate()[1].strip().splitlines()
    return lines[-1] if lines else f"exit code {worker.returncode}"
