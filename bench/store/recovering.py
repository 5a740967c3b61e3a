"""Recovery: a process is killed while it writes, its queues and index are lost, and the log must bring them back.

`python -m bench.store.recovering DIRECTORY BYTES` is that process.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

from bench.store.figures import Figure, at_least
from bench.store.scale import Scale
from bench.store.timing import Stopwatch
from bench.store.workload import fill, messages, settle
from skyrocket.config.sections import StoreConfig
from skyrocket.store.message_store import MessageStore

SECTION = "recovery"
_BODY_BYTES = 900  # with head, topic and properties about 1 KiB
_DIFFERENT = 4096
_DONE = "written"


def measure(scale: Scale, directory: Path) -> list[Figure]:
    root = directory / "recovery"
    _write_and_kill(root, scale.recovery_log_bytes)
    shutil.rmtree(root / "consumequeue")
    shutil.rmtree(root / "index")
    store = MessageStore(root, StoreConfig(dispatch_thread=False))
    with Stopwatch() as watch:
        report = store.open()
    log_bytes = report.end_offset
    opened = watch.round(log_bytes)
    assert log_bytes >= scale.recovery_log_bytes, report
    store.close()
    return [
        Figure(
            SECTION,
            f"open after kill -9, queues and index lost, log of {log_bytes / (1 << 20):.0f} MiB (wall time)",
            1e-6 / opened.wall,
            "MB/s",
            target=at_least(100),
            details={
                "seconds": opened.wall_seconds,
                "cpu_seconds": opened.cpu_seconds,
                "records": report.records,
                "us_per_record": opened.cpu_seconds / report.records * 1e6,
            },
        )
    ]


def _write_and_kill(root: Path, length: int) -> None:
    command = [sys.executable, "-m", "bench.store.recovering", str(root), str(length)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if line.strip() == _DONE:
                break
        writer.kill()


def _write(root: Path, length: int) -> None:
    store = MessageStore(root, StoreConfig(dispatch_thread=False))
    store.open()
    batch = messages(_DIFFERENT, _BODY_BYTES)
    while store.commit_log.written_offset < length:
        fill(store, batch)
    print(_DONE, flush=True)
    while True:  # still writing when the signal comes
        store.put(batch[0])
        settle(store)
        time.sleep(0.01)


if __name__ == "__main__":
    _write(Path(sys.argv[1]), int(sys.argv[2]))
