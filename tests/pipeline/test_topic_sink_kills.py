"""exactly-once through kills: of the driver, of a task's worker, of the broker, each at a chosen point of a batch."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.testing import LocalCluster
from tests.pipeline.sink_tasks import bodies
from tests.waiting import wait_until

PROGRAM = Path(__file__).parent / "exactly_once_program.py"
ROWS_OF_A_FILE = 60
PATIENCE_SECONDS = 240.0
POINTS = (".staged", ".decided", ".committed")


@contextlib.contextmanager
def running(mq: LocalCluster, source: Path, checkpoint: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """The program with its children, none of which is left."""
    names = mq.client_settings.name_servers
    command = [sys.executable, str(PROGRAM), str(names), "Orders", str(source), str(checkpoint)]
    flags = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": flags, "PYTHONPATH": str(PROGRAM.parents[2])}
    process = subprocess.Popen(
        command, start_new_session=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def files_of(checkpoint: Path) -> set[str]:
    """The sink's records; one that is removed at this moment does not count."""
    with contextlib.suppress(FileNotFoundError):
        return {path.name for path in checkpoint.rglob("rocketmq-sink/*/*")}
    return set()


def new_file(process: "subprocess.Popen[bytes]", checkpoint: Path, kind: str) -> bool:
    """Wait until the sink writes another one of a kind; False when the program ended without."""
    before = files_of(checkpoint)

    def is_there() -> bool:
        return any(name.endswith(kind) for name in files_of(checkpoint) - before)

    wait_until(lambda: process.poll() is not None or is_there(), f"a new {kind}", seconds=PATIENCE_SECONDS)
    return is_there()


def workers_of(group: int) -> list[int]:
    """Python workers of a process group."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(folder.name)) == group and b"pyspark.daemon" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def decided_rows(checkpoint: Path) -> int:
    """How many rows the decided and committed batches have together."""
    count = 0
    for path in checkpoint.rglob("rocketmq-sink/*/*"):
        if path.suffix in (".decided", ".committed") and not path.name.startswith("_"):
            if path.suffix == ".decided" and path.with_suffix(".committed").exists():
                continue
            count += json.loads(path.read_text())["messages"]
    return count


def harm(victim: str, process: "subprocess.Popen[bytes]", mq: LocalCluster, chance: random.Random) -> None:
    if victim == "driver":
        os.killpg(process.pid, signal.SIGKILL)
    elif victim == "task":
        for pid in chance.sample(workers := workers_of(process.pid), min(len(workers), 1)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    else:
        mq.kill_broker()
        mq.start_broker()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kills", [pytest.param(20, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.slow)])
def test_each_row_is_there_once_and_none_of_an_undecided_batch(
    rocketmq: LocalCluster, tmp_path: Path, kills: int
) -> None:
    chance = random.Random(kills)
    rocketmq.create_topic("Orders", queues=4)
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    source.mkdir()
    expected: Counter[str] = Counter()
    for number in range(4 * kills + 4):
        rows = [f"{number} {row}" for row in range(ROWS_OF_A_FILE - 1)] + ["same"]
        expected.update(rows)
        (source / f"{number:03}.txt").write_text("".join(f"{row}\n" for row in rows))
    done = 0
    while done < kills:
        with running(rocketmq, source, checkpoint) as process:
            if not new_file(process, checkpoint, chance.choice(POINTS)):
                break  # all is written
            victim = chance.choice(["driver", "driver", "task", "broker"])
            harm(victim, process, rocketmq, chance)
            done += 1
            if victim != "driver":  # the run goes on a little, then this driver is killed as well
                new_file(process, checkpoint, "")
        seen_rows = bodies(rocketmq)
        assert all(seen_rows[row] <= expected[row] for row in seen_rows), "none twice"
        assert sum(seen_rows.values()) <= decided_rows(checkpoint), "none of a batch that is not decided"
    with running(rocketmq, source, checkpoint) as process:
        assert process.wait(PATIENCE_SECONDS) == 0
    assert done > 0
    assert bodies(rocketmq) == expected
