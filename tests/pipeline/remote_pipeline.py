"""A pipeline file with checkpoint and files on another machine, run as a program: a topic into Parquet and a topic."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from skyrocket.client import Message, blocking
from skyrocket.testing import LocalCluster


def copy_orders(
    mq: LocalCluster, place: str, folder: Path, orders: Sequence[str], conf: Mapping[str, str] | None = None
) -> None:
    """Run three times: it begins at the end of the topic, then reads what came since, and then nothing again."""
    for topic in ("Orders", "Copies"):
        mq.create_topic(topic, queues=2)
    file = folder / "copy.yml"
    file.write_text(
        f"name: copy\nsource: {{subscribe: Orders}}\ncheckpoint: {place}/checkpoints/copy\n"
        f"sinks:\n  - {{format: parquet, path: '{place}/lake/orders'}}\n  - {{topic: Copies}}\n"
        f"conf: {json.dumps(dict(conf or {}))}\n"
    )
    _send(mq, "before the first start")
    _run(file, mq)
    _send(mq, *orders)
    _run(file, mq)
    _run(file, mq)


def _send(mq: LocalCluster, *texts: str) -> None:
    with blocking.Producer("shop", mq.client_settings.name_servers) as producer:
        for text in texts:
            producer.send(Message("Orders", text.encode()))


def _run(file: Path, mq: LocalCluster) -> None:
    """A program of its own: Spark's workers find hdfs-native by its PYTHONPATH."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "skyrocket", "pipeline", "run", str(file), "--once"]
    command += ["-n", str(mq.client_settings.name_servers)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
