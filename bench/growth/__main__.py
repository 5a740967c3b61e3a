"""`python -m bench.growth`: rate and memory of a server with more and more topics, connections and messages.

Every number of topics and connections has a server of its own, which are started in turn, so that a busy machine shows
in all; medians of the rounds are printed and drawn. It fails when a line is worse than linear.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.growth import subjects
from bench.growth.plot import plot
from bench.growth.points import Point, as_json, lines_of, table
from bench.load.measure import Timing

_ROOT = Path(__file__).parent.parent.parent

Subject = Callable[[Sequence[int], Timing, Path], Iterator[Point]]


@dataclass(frozen=True)
class Scale:
    """How much there is."""

    rounds: int
    timing: Timing
    topics: tuple[int, ...]
    connections: tuple[int, ...]
    backlog: tuple[int, ...]


USUAL_BACKLOG = 10_000_000
_BACKLOG = (100_000, 1_000_000, 3_000_000, USUAL_BACKLOG, 30_000_000, 100_000_000)
FULL = Scale(3, Timing(2.0, 3.0), (10, 1_000, 10_000), (10, 500, 1_000, 5_000), _BACKLOG)
QUICK = Scale(1, Timing(0.2, 0.5), (10, 100), (10, 100), (1_000, 20_000))


def main() -> None:
    options = _options()
    scale = QUICK if options.quick else FULL
    parts: dict[str, tuple[Subject, tuple[int, ...]]] = {
        "topics": (subjects.topics, scale.topics),
        "connections": (subjects.connections, scale.connections),
        "backlog": (subjects.backlog, _with_room(scale.backlog, options.messages, options.work)),
    }
    points: list[Point] = []
    rounds = options.rounds or scale.rounds
    for number in range(rounds):
        for name in options.only:
            print(f"round {number + 1} of {rounds}: {name}", file=sys.stderr, flush=True)
            subject, counts = parts[name]
            for point in subject(counts, scale.timing, options.work):
                points.append(point)
                print(f"  {json.dumps(asdict(point))}", file=sys.stderr, flush=True)  # a run that is stopped told it
    lines = lines_of(points)
    load = os.getloadavg()[2]
    title = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, load {load:.1f} in the last 15 minutes"
    print(title)
    print(table(lines))
    path = options.results / f"growth-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"run": title, "points": as_json(lines)}, indent=1))
    plot(path.with_suffix(".png"), title, lines)
    print(f"written: {path} and {path.with_suffix('.png').name}", file=sys.stderr)
    if any(line.is_worse_than_linear for line in lines):
        raise SystemExit(1)


def _with_room(counts: Sequence[int], most: int, work: Path) -> tuple[int, ...]:
    """Those that were asked for and leave half of the disk's free space."""
    work.mkdir(parents=True, exist_ok=True)
    room = shutil.disk_usage(work).free // 2 // subjects.MESSAGE_BYTES_ON_DISK
    for count in counts:
        if room < count <= most:
            print(f"{count:,} messages in the store: left out, the disk has room for {room:,}")
    return tuple(count for count in counts if count <= min(most, room))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parts = ("topics", "connections", "backlog")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works, measures little")
    parser.add_argument("--rounds", type=int, help=f"medians of so many (default: {FULL.rounds})")
    most = f"no larger backlog (default: {USUAL_BACKLOG:,}; at most {FULL.backlog[-1]:,}, which takes 30 GB)"
    parser.add_argument("--messages", type=int, default=USUAL_BACKLOG, help=most)
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, metavar="PART", help=", ".join(parts))
    parser.add_argument("--results", type=Path, default=_ROOT / "bench" / "results", help="where results are written")
    parser.add_argument("--work", type=Path, default=_ROOT / "var" / "bench", help="where stores are made; needs 4 GB")
    return parser.parse_args()


if __name__ == "__main__":
    main()
