"""`python -m bench.guard`: is it as fast as it was? Five minutes; exit code 1 when a cost grew by more than 15 %.

Compared are costs beside a floor that runs in the same moments (the load generator's own CPU, a bare protocol loop, a
bare copy), with those in bench/guard/recorded.json. What looks worse is measured again, twice at most, and the best
counts. --record writes the file, from three measurements of which the middle counts: do that on a quiet machine, in the
commit that made the difference.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.guard import record
from bench.guard.rows import FAMILIES, SHORT, USUAL, Effort, Rows
from bench.load.own_server import WORK

_RECORDED = Path(__file__).parent / "recorded.json"
_TRIES = 3


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    effort = SHORT if options.short else USUAL
    if options.record:
        rows: Rows = dict(record.read(options.recorded).rows) if options.families else {}
        for family in options.families or FAMILIES:
            rows |= record.middle_of([_measure(family, effort) for _ in range(1 if options.short else _TRIES)])
        record.write(options.recorded, rows)
        print(f"recorded {len(rows)} costs in {options.recorded}")
        return
    before = record.read(options.recorded)
    compared: list[record.Compared] = []
    for family in options.families or FAMILIES:
        compared += _compare(family, before.rows, effort)
    _print_table(before, compared)
    worse = [row.name for row in compared if row.verdict.fails]
    if worse:
        sys.exit(f"bench.guard: {len(worse)} of {len(compared)} costs are worse or missing: {'; '.join(worse)}")


def _compare(family: str, before: Mapping[str, float], effort: Effort) -> list[record.Compared]:
    rows = _measure(family, effort)
    compared = record.compare(before, rows, [family])
    for _ in range(_TRIES - 1):
        if not any(row.verdict is record.Verdict.WORSE for row in compared):
            break
        rows = record.best_of(rows, _measure(family, effort))
        compared = record.compare(before, rows, [family])
    return compared


def _measure(family: str, effort: Effort) -> Rows:
    print(f"{family} …", file=sys.stderr, flush=True)
    WORK.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=WORK, prefix="guard-"))
    try:
        return FAMILIES[family](effort, folder)
    finally:
        shutil.rmtree(folder)


def _print_table(before: record.Record, compared: Sequence[record.Compared]) -> None:
    table = Table(title=f"costs as multiples of their floors; recorded {before.date}, Python {before.python}")
    table.add_column("what")
    for title in ("recorded", "now", "change"):
        table.add_column(title, justify="right")
    table.add_column("")
    for row in compared:
        change = f"{row.now / row.before - 1:+.0%}" if row.now and row.before else ""
        table.add_row(row.name, _number(row.before), _number(row.now), change, row.verdict.value)
    Console(width=None if Console().is_terminal else 150).print(table)


def _number(cost: float | None) -> str:
    return "–" if cost is None else f"{cost:.2f}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.guard", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"some of: {', '.join(FAMILIES)} (default: all)")
    parser.add_argument("--record", action="store_true", help="write what is measured as what later runs must keep")
    parser.add_argument(
        "--recorded", type=Path, default=_RECORDED, help="the file (default: bench/guard/recorded.json)"
    )
    parser.add_argument("--short", action="store_true", help="half a minute: shows that it works, compares little")
    options = parser.parse_args(arguments)
    for family in options.families:
        if family not in FAMILIES:
            parser.error(f"no family {family!r}; there are {', '.join(FAMILIES)}")
    return options


if __name__ == "__main__":
    main()
