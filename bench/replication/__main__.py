"""What a slave costs its master and how fast it follows, beside Apache RocketMQ's own pair.

parts (all, unless --only names some):
  cost        sends of 128 bytes, 64 in flight: a master alone, with an asynchronous slave, with a synchronous one
  apache      the same load on Apache RocketMQ 5.4.0 with its own slave (needs Java, Maven)
  following   large messages at 110 MB/s with a slave that follows; then an empty slave that catches up with the log
  backlog     sends while a consumer reads old messages, which it is sent to the slave for; and left at the master;
              as many sends as the master takes, and half as many

Ratios are of this run; keep the machine quiet. Master, slave, load and consumer share the cores of this machine, but
for the rows "two machines" of the backlog: there master and load have one half of them, slave and consumer the other.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from tests.interop.apache import Unavailable, obtain

from bench.load.measure import LoadFailed, Timing
from bench.load.own_server import WORK
from bench.peers.processes import NotReady
from bench.replication.backlog import backlogs
from bench.replication.costs import costs
from bench.replication.following import following
from bench.replication.report import OURS, Results, markdown, print_table
from bench.replication.servers import NotFollowed

PARTS = ("cost", "apache", "following", "backlog")
APACHE = "5.4.0"
_MIB = 1 << 20


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if options.quick:
        options.seconds, options.rounds, options.mib, options.apache_warm_up = 1.0, 1, 64, 2.0
    options.work.mkdir(parents=True, exist_ok=True)
    now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    title = f"Run of {now}, {os.cpu_count()} cores, load before {os.getloadavg()[0]:.2f}; {options.seconds:g} s each"
    results = Results()
    signal.signal(signal.SIGTERM, _stop)  # brokers are ended, and what was measured so far is printed
    try:
        _run(options, results)
    except (LoadFailed, NotReady, NotFollowed) as error:
        sys.exit(f"bench.replication: {error}")
    finally:
        if options.markdown:
            print(f"{title}\n\n{markdown(results)}", flush=True)
        else:
            console = Console(width=None if Console().is_terminal else 180, highlight=False)
            console.print(title + "\n")
            print_table(console, results)


def _stop(*_: object) -> None:
    sys.exit("bench.replication: stopped")


def _run(options: argparse.Namespace, results: Results) -> None:
    parts, work = options.only or PARTS, options.work
    warm_up = min(1.5, options.seconds)
    timing = Timing(warm_up, options.seconds)
    if "cost" in parts:
        results.costs[OURS] = costs(work, timing, options.rounds)
    if "apache" in parts:
        try:
            apache = obtain(APACHE)
        except Unavailable as reason:
            print(f"no Apache RocketMQ {APACHE}: {reason}", file=sys.stderr)
        else:
            theirs = costs(work, Timing(options.apache_warm_up, options.seconds), options.apache_rounds, apache)
            results.costs[f"Apache {APACHE}"] = theirs
    if "following" in parts:
        results.following = following(work, options.seconds, options.mib * _MIB)
    if "backlog" in parts:
        results.backlogs = backlogs(work, timing, options.rounds, options.mib * _MIB)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.replication",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measured part (default: 4)")
    parser.add_argument(
        "--rounds", type=int, default=3, help="of our sends, and of what is judged of the backlog (default: 3)"
    )
    parser.add_argument("--apache-rounds", type=int, default=1, help="of Apache's (default: 1)")
    parser.add_argument("--apache-warm-up", type=float, default=15.0, help="seconds before each (default: 15)")
    parser.add_argument("--mib", type=int, default=1024, help="of the log that is caught up with (default: 1024)")
    parser.add_argument("--work", type=Path, default=WORK, help="where stores are made")
    parser.add_argument("--quick", action="store_true", help="small and short: shows that everything runs")
    parser.add_argument("--markdown", action="store_true", help="print as it stands in the documentation")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
