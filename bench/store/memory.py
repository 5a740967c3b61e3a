"""Memory of an idle store with many queues, each measured in a process of its own.

`python -m bench.store.memory fill|open DIRECTORY QUEUES` is that process.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from bench.store.figures import Figure, at_most
from bench.store.scale import Scale
from bench.store.workload import fill, many_queues, messages
from skyrocket.config.sections import StoreConfig
from skyrocket.store.message_store import MessageStore

SECTION = "memory"
_MESSAGES_PER_QUEUE = 4
_IDLE_SECONDS = 1.5


def measure(scale: Scale, directory: Path) -> list[Figure]:
    root = directory / "memory"
    after_writing = _in_child("fill", root, scale.idle_queues)
    after_opening = _in_child("open", root, scale.idle_queues)
    name = f"resident memory of an idle store, {scale.idle_queues:,} queues"
    return [
        _figure(f"{name}, just opened", after_opening),
        _figure(f"{name}, after {_MESSAGES_PER_QUEUE} messages to each", after_writing),
    ]


def _figure(name: str, kilobytes: dict[str, int]) -> Figure:
    details = {f"{key}_mb": value * 1024 / 1e6 for key, value in kilobytes.items()}
    return Figure(SECTION, name, details["VmRSS_mb"], "MB", target=at_most(150), details=details)


def _in_child(state: str, root: Path, queues: int) -> dict[str, int]:
    command = [sys.executable, "-m", "bench.store.memory", state, str(root), str(queues)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    kilobytes: dict[str, int] = json.loads(answer.splitlines()[-1])
    return kilobytes


def _resident_kilobytes() -> dict[str, int]:
    """VmRSS and its parts: private memory, and pages of mapped files that the kernel may take back at any time."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return {name: int(fields[name].split()[0]) for name in ("VmRSS", "RssAnon", "RssFile")}


def _idle(state: str, root: Path, queues: int) -> None:
    base = _resident_kilobytes()["VmRSS"]
    store = MessageStore(root, StoreConfig())
    store.open()
    if state == "fill":
        wanted = many_queues(queues)
        for _ in range(_MESSAGES_PER_QUEUE):
            fill(store, messages(queues, 128, wanted))
        store.flush_queues()
    assert len(store.queues) == queues
    time.sleep(_IDLE_SECONDS)
    print(json.dumps({**_resident_kilobytes(), "imports": base}), flush=True)
    store.close()


if __name__ == "__main__":
    _idle(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
