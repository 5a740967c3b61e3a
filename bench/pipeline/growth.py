"""Does four times the log take four times as long, in the same memory? One task's work on logs of growing size.

    python -m bench.pipeline.growth [--messages 100000]

Each size runs in a process of its own. Memory is what the process itself holds (RssAnon): pages of the mapped log
belong to the page cache, and go when somebody needs the room.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from bench.pipeline.logs import LogShape, write_log
from skyrocket.columns import decode_parts
from skyrocket.columns.schema import arrow_schema
from skyrocket.format.record_columns import Parts
from skyrocket.pipeline.archive.split_task import SplitTask, archive_split
from skyrocket.pipeline.commit_log.log_files import find_log_files, mapped
from skyrocket.pipeline.commit_log.splits import Bounds, Split, plan
from skyrocket.pipeline.commit_log.walk import walk_split

SIZES = (1, 2, 4, 8)
_SAMPLE_SECONDS = 0.01


def decoding(split: Split, _: Path) -> None:
    """All columns of all records, batch after batch."""
    schema = arrow_schema()
    with mapped(split.path) as buffer:
        for parts in walk_split(buffer, split):
            assert isinstance(parts, Parts)
            decode_parts(buffer, parts, schema, "broker-a")


def archiving(split: Split, directory: Path) -> None:
    """The split as Parquet."""
    archive_split(SplitTask(split, "broker-a", ".*", str(directory), "staging"))


WORK: dict[str, Callable[[Split, Path], None]] = {"decode": decoding, "archive": archiving}


def main() -> None:
    """Print a line per size and work."""
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline.growth", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="of the smallest log")
    parser.add_argument("--in-process", nargs=2, metavar=("WORK", "STORE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.in_process:
        work, store = arguments.in_process
        measure(WORK[work], Path(store))
        return
    print(f"{'work':10} {'MiB of log':>10} {'seconds':>9} {'MB/s':>8} {'MiB held':>9}")
    for factor in SIZES:
        with tempfile.TemporaryDirectory(prefix="bench-growth-") as directory:
            size = write_log(Path(directory), LogShape(arguments.messages * factor, 256))
            for work in WORK:
                command = [sys.executable, "-m", "bench.pipeline.growth", "--in-process", work, directory]
                seconds, held = map(float, subprocess.run(command, check=True, capture_output=True).stdout.split())
                print(f"{work:10} {size >> 20:10} {seconds:9.2f} {size / seconds / 1e6:8.0f} {held:9.0f}", flush=True)


def measure(work: Callable[[Split, Path], None], store: Path) -> None:
    """Print seconds, and the most memory above what the process held before."""
    pa.array([1])  # what a first use brings is not the work's
    (split,) = plan(find_log_files(str(store)), (), Bounds(), 1 << 40, None)
    before, most = held_mib(), 0.0
    ending = threading.Event()

    def watch() -> None:
        nonlocal most
        while not ending.wait(_SAMPLE_SECONDS):
            most = max(most, held_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    work(split, store)
    seconds = time.perf_counter() - began
    ending.set()
    watcher.join()
    print(seconds, max(most - before, 0.0))


def held_mib() -> float:
    """Memory of this process that is no file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 1024


if __name__ == "__main__":
    main()
