"""`python -m bench.store`: measure the store, print a table, write JSON lines and a plot to bench/results/."""

import argparse
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from bench.store import appending, group_commit, memory, querying, reading, recovering, report
from bench.store.figures import Figure
from bench.store.plot import plot
from bench.store.scale import FULL, QUICK, Scale
from bench.store.timing import pin_to_one_core, warm_memory

_ROOT = Path(__file__).parent.parent.parent
_RESULTS = _ROOT / "bench" / "results"
_WORK = _ROOT / "var" / "bench"  # on a disk: in /tmp an fsync may cost nothing

_SECTIONS: dict[str, Callable[[Scale, Path], list[Figure]]] = {
    "append": appending.measure,
    "read": reading.measure,
    "query": querying.measure,
    "group-commit": group_commit.measure,
    "recovery": recovering.measure,
    "memory": memory.measure,
}


def main() -> None:
    options = _options()
    if options.last:
        run, figures = report.load(_newest(options.results))
    else:
        run, figures = _measure(options)
    if options.markdown:
        print(report.markdown(run, figures))
    else:
        report.print_table(Console(width=None if Console().is_terminal else 180), run, figures)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.store", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works, measures little")
    parser.add_argument("--only", nargs="+", choices=_SECTIONS, default=list(_SECTIONS), metavar="SECTION",
                        help=f"some of: {', '.join(_SECTIONS)}")  # fmt: skip
    parser.add_argument(
        "--markdown", action="store_true", help="print the table as Markdown, for docs/internals/performance.md"
    )
    parser.add_argument("--last", action="store_true", help="measure nothing, print the newest results")
    parser.add_argument("--results", type=Path, default=_RESULTS, help="where results are written")
    parser.add_argument("--work", type=Path, default=_WORK, help="where stores are made; needs 4 GB in a full run")
    return parser.parse_args()


def _newest(results: Path) -> Path:
    found = sorted(results.glob("store-*.jsonl"))
    if not found:
        raise SystemExit(f"no results in {results}: run without --last first")
    return found[-1]


def _measure(options: argparse.Namespace) -> tuple[report.Run, list[Figure]]:
    scale = QUICK if options.quick else FULL
    progress = Console(stderr=True)
    run = report.this_run(scale.name, pin_to_one_core())
    warm_memory(scale.warm_bytes)
    figures: list[Figure] = []
    for name in options.only:
        with progress.status(f"measuring: {name}"):
            figures += _in_own_directory(_SECTIONS[name], scale, options.work)
    path = options.results / f"store-{datetime.now(UTC):%Y%m%d-%H%M%S}.jsonl"
    report.save(path, run, figures)
    plot(path.with_suffix(".png"), run, figures)
    progress.print(f"written: {path} and {path.with_suffix('.png').name}")
    return run, figures


def _in_own_directory(measure: Callable[[Scale, Path], list[Figure]], scale: Scale, work: Path) -> list[Figure]:
    work.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(dir=work))
    try:
        return measure(scale, directory)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
