"""How long a set of three has no writable master after kill -9, ours beside Apache RocketMQ's with its own controller.

parts (all, unless --only names some):
  ours, ours-tuned        our brokers and our controller (a file): default settings, and as docs/guides/failover.md says
  ours-frozen             tuned, and masters that stand still (SIGSTOP): their connections stay, only heartbeats stop
  apache, apache-tuned, apache-frozen       Apache RocketMQ 5.4.0, its brokers and its controller (needs Java, Maven)

Each run ends the master, waits for the first message that another broker acknowledges (allAckInSyncStateSet,
minInSyncReplicas=2), starts the old one again and waits until all are in sync. Keep the machine quiet.

Every run is kept in var/failover. `--runs 50 --minutes 20` ends in time; the same with --resume, as often as it takes,
goes on where that ended, and the table has all runs of this commit.
"""

import argparse
import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from tests import ROOT
from tests.interop.apache import Unavailable, obtain
from tests.interop.failover.sets import APACHE
from tests.outcomes import version

from bench.failover.kept_runs import KeptRuns
from bench.failover.report import FROZEN, KILLED, OURS, Distribution, markdown, print_table
from bench.failover.settings import DEFAULT, TUNED, Setting
from bench.failover.silences import NoMaster, silences
from bench.load.own_server import WORK

PARTS: Final = ("ours", "ours-tuned", "ours-frozen", "apache", "apache-tuned", "apache-frozen")
KEPT: Final = ROOT / "var" / "failover"
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
    kept = KeptRuns(options.kept, version())
    ends_at = math.inf if options.minutes is None else time.monotonic() + options.minutes * 60
    for part in options.only or PARTS:
        if not options.resume:
            kept.forget(part)
        try:
            _measure(part, options.work, kept, runs, ends_at)
        except Unavailable as reason:
            print(f"no Apache RocketMQ {APACHE}: {reason}", file=sys.stderr)
        finally:
            if seconds := kept.of(part):
                maker = f"Apache {APACHE}" if part.startswith("apache") else OURS
                results.append(
                    Distribution(maker, _setting(part).name, seconds, FROZEN if _is_frozen(part) else KILLED)
                )


def _measure(part: str, work: Path, kept: KeptRuns, runs: int, ends_at: float) -> None:
    """The runs that are missing, as long as there is time to begin one; raises Unavailable."""
    missing = runs - len(kept.of(part))
    if missing <= 0 or time.monotonic() >= ends_at:
        return
    apache = obtain(APACHE) if part.startswith("apache") else None
    with contextlib.closing(silences(work, _setting(part), missing, apache, frozen=_is_frozen(part))) as measured:
        for seconds in measured:
            kept.add(part, seconds)
            if time.monotonic() >= ends_at:
                return


def _setting(part: str) -> Setting:
    return TUNED if "-" in part else DEFAULT


def _is_frozen(part: str) -> bool:
    return part.endswith("-frozen")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.failover",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--runs", type=int, default=10, help="kills of each set (default: 10; 50 for a distribution)")
    parser.add_argument("--minutes", type=float, help="begin no run after so long (default: all runs)")
    parser.add_argument("--resume", action="store_true", help="runs that are kept of this commit count")
    parser.add_argument("--kept", type=Path, default=KEPT, help="where runs are kept")
    parser.add_argument("--work", type=Path, default=WORK, help="where stores are made")
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK_RUNS} runs: shows that everything works")
    parser.add_argument("--markdown", action="store_true", help="print as it stands in the documentation")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
