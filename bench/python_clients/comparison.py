"""All systems, one after the other; the newest figures of each are kept and shown together."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.peers.report import put_between
from bench.python_clients import report
from bench.python_clients.confluent import CONFLUENT
from bench.python_clients.kafka import KAFKA
from bench.python_clients.measure import Amounts, measured
from bench.python_clients.nats import NATS
from bench.python_clients.rabbitmq import CLASSIC, QUORUM
from bench.python_clients.redis_streams import REDIS
from bench.python_clients.rocketmq import APACHE, SKYROCKET
from bench.python_clients.system import Row

SYSTEMS = {each.key: each for each in (SKYROCKET, APACHE, KAFKA, CONFLUENT, NATS, REDIS, CLASSIC, QUORUM)}
_ROOT = Path(__file__).parent.parent.parent
_RESULTS = _ROOT / "bench" / "results"
_DOCS = _ROOT / "docs" / "internals" / "performance.md"
_QUICK = Amounts(seconds=0.5, rounds=1, batched=5_000, stock=5_000, latency_rate=100, latency_seconds=1.0)
_FULL = Amounts(seconds=5.0, rounds=3, batched=200_000, stock=200_000, latency_rate=500, latency_seconds=20.0)


def measure(keys: Sequence[str], *, quick: bool) -> tuple[list[Row], dict[str, str]]:
    """One after the other; what fails is left out with the reason."""
    rows: list[Row] = []
    left_out: dict[str, str] = {}
    for key in keys:
        system = SYSTEMS[key]
        print(f"{system.name} …", file=sys.stderr, flush=True)
        try:
            row = measured(system, _QUICK if quick else _FULL)
        except Exception as reason:  # noqa: BLE001 - every client has its own; the others are measured all the same
            left_out[system.name] = f"{type(reason).__name__}: {reason}"
            print(f"  left out: {left_out[system.name]}", file=sys.stderr, flush=True)
            continue
        rows.append(row)
        if not quick:
            report.save(_RESULTS, key, row)
    return rows, left_out


def kept(keys: Sequence[str]) -> tuple[list[Row], dict[str, str]]:
    """The newest figures of these systems; what was never measured is left out."""
    missing = [SYSTEMS[key].name for key in keys if not report.load(_RESULTS, [key])]
    return report.load(_RESULTS, keys), dict.fromkeys(missing, "not measured yet")


def show(rows: Sequence[Row], left_out: dict[str, str]) -> None:
    """The table on the terminal."""
    print(report.title(rows, os.cpu_count() or 1) if rows else "nothing was measured", end="\n\n")
    print(report.table(rows, left_out))


def write_docs(keys: Sequence[str] = tuple(SYSTEMS)) -> None:
    """The newest figures of each system into the page."""
    rows = report.load(_RESULTS, keys)
    if not rows:
        raise SystemExit(f"no results in {_RESULTS}: run without --last first")
    text = f"{report.title(rows, os.cpu_count() or 1)}\n\n{report.table(rows, {})}"
    put_between(_DOCS, report.BEGIN, text, report.END)
    print(f"written: {_DOCS}", file=sys.stderr)
