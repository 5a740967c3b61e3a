"""Skyrocket beside other message systems as a Python program sees them: `python -m bench.python_clients`.

Every system with its own asyncio client on the same event loop (uvloop), one after the other on this machine, messages
of 128 bytes: sends that are awaited with 64 in flight, sends by the client's own batching, consumption message by
message and in bulk, latency from send to reader at a fixed rate, what the server spends, and the time from the start of
the server to the first message. What cannot be had is left out with the reason. Keep the machine quiet.

examples:
  python -m bench.python_clients                         everything, some fifteen minutes
  python -m bench.python_clients --only skyrocket kafka
  python -m bench.python_clients --quick                 shows that it works, measures nothing
"""

import argparse
import json
import os
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bench.python_clients.kafka import KAFKA
from bench.python_clients.measure import Amounts, measured
from bench.python_clients.nats import NATS
from bench.python_clients.rabbitmq import CLASSIC, QUORUM
from bench.python_clients.redis_streams import REDIS
from bench.python_clients.rocketmq import APACHE, SKYROCKET
from bench.python_clients.system import Row

_SYSTEMS = {each.key: each for each in (SKYROCKET, APACHE, KAFKA, NATS, REDIS, CLASSIC, QUORUM)}
_RESULTS = Path(__file__).parent.parent / "results"
_QUICK = Amounts(seconds=0.5, rounds=1, batched=5_000, stock=5_000, latency_rate=100, latency_seconds=1.0)
_FULL = Amounts(seconds=5.0, rounds=3, batched=200_000, stock=200_000, latency_rate=500, latency_seconds=20.0)
_TITLES = (
    "",
    "an acknowledgement means",
    "64 awaited sends /s",
    "server µs",
    "client µs",
    "batched sends /s",
    "server µs",
    "one by one /s",
    "client µs",
    "in bulk /s",
    "client µs",
    "p50 / p99 ms",
    "MB idle / loaded",
    "s to first message",
)


def table(rows: list[Row], left_out: dict[str, str]) -> str:
    """As Markdown."""
    lines = ["| " + " | ".join(_TITLES) + " |", "|---" * len(_TITLES) + "|"]
    for row in rows:
        cells = [
            row.name,
            row.promise,
            f"{row.awaited_rate:,.0f}",
            f"{row.awaited_server_cpu_us:.1f}",
            f"{row.awaited_client_cpu_us:.1f}",
            f"{row.batched_rate:,.0f}",
            f"{row.batched_server_cpu_us:.1f}",
            f"{row.one_by_one_rate:,.0f}",
            f"{row.one_by_one_client_cpu_us:.1f}",
            f"{row.bulk_rate:,.0f}",
            f"{row.bulk_client_cpu_us:.1f}",
            f"{row.latency_p50_ms:.2f} / {row.latency_p99_ms:.2f}",
            f"{row.idle_mb:.0f} / {row.loaded_mb:.0f}",
            f"{row.first_message_s:.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *(f"No {name}: {reason}" for name, reason in left_out.items())])


def main() -> None:
    options = _options()
    rows: list[Row] = []
    left_out: dict[str, str] = {}
    for key in options.only:
        system = _SYSTEMS[key]
        print(f"{system.name} …", file=sys.stderr, flush=True)
        try:
            rows.append(measured(system, _QUICK if options.quick else _FULL))
        except Exception as reason:  # noqa: BLE001 - every client has its own; the others are measured all the same
            left_out[system.name] = f"{type(reason).__name__}: {reason}"
            print(f"  left out: {left_out[system.name]}", file=sys.stderr, flush=True)
    kind = "quick-python" if options.quick else "python"
    _RESULTS.mkdir(parents=True, exist_ok=True)
    path = _RESULTS / f"{kind}-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps({"rows": [asdict(row) for row in rows], "left_out": left_out}, indent=1))
    print(table(rows, left_out))
    print(f"\non {os.cpu_count()} CPUs; load average {os.getloadavg()[0]:.1f}; written: {path.name}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.python_clients",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ", ".join(_SYSTEMS)
    parser.add_argument("--only", nargs="+", choices=_SYSTEMS, default=list(_SYSTEMS), metavar="SYSTEM", help=names)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes: shows that it works")
    return parser.parse_args()


if __name__ == "__main__":
    main()
