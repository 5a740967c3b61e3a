"""How long a set of three has no writable master after kill -9, ours beside Apache RocketMQ's with its own controller.

parts (all, unless --only names some):
  ours, ours-tuned        our brokers and our controller (a file): default settings, and as docs/guides/failover.md says
  ours-frozen             tuned, and masters that stand still (SIGSTOP): their connections stay, only heartbeats stop
  apache, apache-tuned, apache-frozen       Apache RocketMQ 5.4.0, its brokers and its controller (needs Java, Maven)

Each run ends the master, waits for the first message that another broker acknowledges (allAckInSyncStateSet,
minInSyncReplicas=2), starts the old one again and waits until all are in sync. Keep the machine quiet.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from tests.interop.apache import Apache, Unavailable, obtain
from tests.interop.failover.sets import APACHE

from bench.failover.report import FROZEN, KILLED, OURS, Distribution, markdown, print_table
from bench.failover.settings import DEFAULT, TUNED
from bench.failover.silences import NoMaster, silences
from bench.load.own_server import WORK

PARTS: Final = ("ours", "ours-tuned", "ours-frozen", "apache", "apache-tuned", "apache-frozen")
_QUICK_RUNS: Final = 2


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    title = f"Run of {now}, {os.cpu_count()} cores, load before {os.getloadavg()[0]:.2f}"
    results: list[Distribution] = []
    signal.signal(signal.SIGTERM, _stop)  # brokers are ended, and what was measured so far is printed
    try:
        _run(options, results)
    except (NoMaster, AssertionError) as error:
        sys.exit(f"bench.failover: {error}")
    finally:
        if options.markdown:
            print(f"{title}\n\n{markdown(results)}", flush=True)
        else:
            console = Console(width=None if Console().is_terminal else 140, highlight=False)
            console.print(title + "\n")
            print_table(console, results)


def _stop(*_: object) -> None:
    sys.exit("bench.failover: stopped")


def _run(options: argparse.Namespace, results: list[Distribution]) -> None:
    runs = _QUICK_RUNS if options.quick else options.runs
    for part in options.only or PARTS:
        setting, frozen = TUNED if "-" in part else DEFAULT, part.endswith("-frozen")
        apache: Apache | None = None
        if part.startswith("apache"):
            try:
                apache = obtain(APACHE)
            except Unavailable as reason:
                print(f"no Apache RocketMQ {APACHE}: {reason}", file=sys.stderr)
                continue
        maker = OURS if apache is None else f"Apache {APACHE}"
        seconds: list[float] = []
        try:
            seconds.extend(silences(options.work, setting, runs, apache, frozen=frozen))
        finally:
            if seconds:
                results.append(Distribution(maker, setting.name, seconds, FROZEN if frozen else KILLED))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.failover",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--runs", type=int, default=10, help="kills of each set (default: 10; 50 for a distribution)")
    parser.add_argument("--work", type=Path, default=WORK, help="where stores are made")
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK_RUNS} runs: shows that everything works")
    parser.add_argument("--markdown", action="store_true", help="print as it stands in the documentation")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
