"""A program: so many clusters, one after the other, each used; prints what was left behind as JSON."""

import gc
import json
import sys
import tempfile
import threading
from pathlib import Path

from skyrocket.client import Message
from skyrocket.testing import LocalCluster


def left() -> dict[str, object]:
    gc.collect()
    descriptors = Path("/proc/self/fd")
    listening = [line for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"]
    inodes = {_target(fd) for fd in descriptors.iterdir()}
    return {
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "descriptors": len(list(descriptors.iterdir())),
        "ports": sum(f"socket:[{line.split()[9]}]" in inodes for line in listening),
        "files": sorted(map(str, Path(tempfile.gettempdir()).iterdir())),
        "maps": sum("skyrocket-" in line for line in Path("/proc/self/maps").read_text().splitlines()),
    }


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""  # the one that lists the directory


def use(number: int) -> float:
    with LocalCluster() as mq:
        mq.create_topic("Orders", queues=2)
        with mq.producer() as producer:
            producer.send(Message("Orders", b"%d" % number, keys="k"))
            producer.send(Message("Orders", b"later", delay_level=3))
        mq.advance(seconds=11)
        if number % 5 == 0:
            mq.kill_broker()
            mq.start_broker()
        assert [message.body for message in mq.messages("Orders")] == [b"%d" % number, b"later"]
        return mq.ready_seconds


def main(count: int) -> None:
    use(0)  # what is made once per process: the blocking clients' thread, modules
    before = left()
    ready = sorted(use(number) for number in range(1, count + 1))
    sys.stdout.write(json.dumps({"before": before, "after": left(), "ready": ready[len(ready) // 2]}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
