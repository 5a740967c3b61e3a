"""How fast the Python client is, in one run: `python -m bench.client_speed`.

One process, one connection to our broker, messages of 128 bytes. Every figure stands beside the bare protocol loop of
`bench.load`, measured in turn with it, and beside the official clients where they can be had (--others).
"""

import argparse
import os
from collections.abc import Sequence

from bench.client_speed import official_grpc, official_java
from bench.client_speed.beside_bare import beside_bare
from bench.client_speed.rounds import Figure
from bench.load.own_server import own_server
from skyrocket.remoting.event_loop import run

# Of one process, as messages per second.
TARGETS = {"send": 30_000, "batch": 150_000, "consume": 80_000}
# What its maintainer measured for one change of it; neither the machine nor the message is ours.
AIOKAFKA = "aiokafka, as published (github.com/aio-libs/aiokafka/pull/946): 141,686 messages/s sent in batches"


def table(measured: Sequence[tuple[str, Figure, Figure]], others: dict[str, dict[str, float] | str]) -> str:
    """As Markdown."""
    titles = [
        "",
        "target",
        "ours, best",
        "CPU",
        "per CPU second",
        "bare loop",
        "CPU",
        "rate to bare",
        "CPU to bare",
        *others,
    ]
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for what, ours, bare in measured:
        cells = [
            ours.name,
            f"{TARGETS[what]:,}/s",
            f"{ours.best_rate:,.0f}/s",
            f"{ours.least_cpu_us:.1f} µs",
            f"{1e6 / ours.least_cpu_us:,.0f}",  # what a core of its own would allow; the broker may be slower
            f"{bare.best_rate:,.0f}/s",
            f"{bare.least_cpu_us:.1f} µs",
            f"{ours.best_rate / bare.best_rate:.2f}",
            f"{ours.least_cpu_us / bare.least_cpu_us:.1f}",
        ]
        for figures in others.values():
            rate = None if isinstance(figures, str) else figures.get(what)
            cells.append("–" if rate is None else f"{rate:,.0f}/s")
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *(f"No {name}: {reason}" for name, reason in others.items() if isinstance(reason, str))]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a round")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--others", action="store_true", help="the official Java and Python gRPC clients as well")
    arguments = parser.parse_args()
    with own_server() as server:
        measured = run(beside_bare(server, arguments.seconds, arguments.rounds))
    others: dict[str, dict[str, float] | str] = {}
    if arguments.others:
        others["Java client, 64 threads"] = official_java.figures(max(arguments.seconds, 5.0))
        others["Python gRPC client, Apache's proxy"] = official_grpc.figures(max(arguments.seconds, 5.0))
    print(table(measured, others))
    print(f"\nbest of {arguments.rounds} rounds on {os.cpu_count()} CPUs; load average {os.getloadavg()[0]:.1f}")
    print(AIOKAFKA)


if __name__ == "__main__":
    main()
