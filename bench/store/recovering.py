"""Recovery: a process is killed while it writes, its queues and index are lost, and the log must bring them back.

`python -m bench.store.recovering write|open DIRECTORY BYTES BODY` is such a process. The one that recovers is
killed too, and what it wrote beside the log (checkpoint, manifest) is put back, so that each round finds what the first
one found.
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from bench.store.figures import Figure, Target, at_least
from bench.store.scale import Scale
from bench.store.timing import Round, Series, Stopwatch
from bench.store.workload import fill, messages, settle
from skyrocket.config.sections import StoreConfig
from skyrocket.store.message_store import MessageStore

SECTION = "recovery"
_LARGE_BYTES = 900  # with head, topic and properties about 1 KiB
_SMALL_BYTES = 128
_DIFFERENT = 4096
_ANSWER = "answer: "


def measure(scale: Scale, directory: Path) -> list[Figure]:
    length = scale.recovery_log_bytes
    return [
        _measure(scale, directory / "recovery", length, _LARGE_BYTES, "1 KiB", target=at_least(600)),
        _measure(scale, directory / "recovery-small", length // 4, _SMALL_BYTES, "128-byte", target=None),
    ]


def _measure(scale: Scale, root: Path, length: int, body_bytes: int, name: str, target: Target | None) -> Figure:
    _run_and_kill("write", root, length, body_bytes)
    left_behind = {path: path.read_bytes() for path in root.iterdir() if path.is_file()}
    rounds, records = [], 0
    for _ in range(scale.recovery_rounds):
        _put_back(root, left_behind)
        found = _run_and_kill("open", root, length, body_bytes)
        assert found["log_bytes"] >= length, found
        rounds.append(Round(int(found["log_bytes"]), found["wall_seconds"], found["cpu_seconds"]))
        records = int(found["records"])
    series = Series(rounds)
    log_bytes = rounds[-1].units
    subject = f"{name} messages, log of {log_bytes / (1 << 20):.0f} MiB (wall time)"
    return Figure(
        SECTION,
        f"open after kill -9, queues and index lost, {subject}",
        1e-6 / series.wall,
        "MB/s",
        target=target,
        spread=series.wall_spread,
        details={
            "seconds": series.wall * log_bytes,
            "cpu_seconds": series.cpu * log_bytes,
            "records": records,
            **{f"round_{number}_cpu_seconds": each.cpu_seconds for number, each in enumerate(rounds, 1)},
            **{f"round_{number}_wall_seconds": each.wall_seconds for number, each in enumerate(rounds, 1)},
            "cpu_us_per_record": series.cpu * log_bytes / records * 1e6,
        },
    )


def _put_back(root: Path, left_behind: dict[Path, bytes]) -> None:
    """The small files as the killed writer left them; queues and index are lost."""
    shutil.rmtree(root / "consumequeue")
    shutil.rmtree(root / "index")
    for path in root.iterdir():
        if path.is_file() and path not in left_behind:
            path.unlink()
    for path, content in left_behind.items():
        path.write_bytes(content)


def _run_and_kill(work: str, root: Path, length: int, body_bytes: int) -> dict[str, float]:
    """Let a process work until it answers, then kill it."""
    command = [sys.executable, "-m", "bench.store.recovering", work, str(root), str(length), str(body_bytes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        answer: dict[str, float] | None = None
        for line in process.stdout:
            if line.startswith(_ANSWER):
                answer = json.loads(line.removeprefix(_ANSWER))
                break
        process.kill()
    assert answer is not None, f"the process that should {work} died before it answered"
    return answer


def _answer(**values: float) -> None:
    print(_ANSWER + json.dumps(values), flush=True)


def _write(root: Path, length: int, body_bytes: int) -> None:
    store = MessageStore(root, StoreConfig(dispatch_thread=False))
    store.open()
    batch = messages(_DIFFERENT, body_bytes)
    while store.commit_log.written_offset < length:
        fill(store, batch)
    _answer(log_bytes=store.commit_log.written_offset)
    while True:  # still writing when the signal comes
        store.put(batch[0])
        settle(store)
        time.sleep(0.01)


def _open(root: Path) -> None:
    store = MessageStore(root, StoreConfig(dispatch_thread=False))
    with Stopwatch() as watch:
        report = store.open()
    opened = watch.round(1)
    _answer(
        log_bytes=report.end_offset,
        records=report.records,
        wall_seconds=opened.wall_seconds,
        cpu_seconds=opened.cpu_seconds,
    )
    time.sleep(60)  # until the signal comes


if __name__ == "__main__":
    if sys.argv[1] == "write":
        _write(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        _open(Path(sys.argv[2]))
