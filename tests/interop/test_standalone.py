"""RocketMQ's own Java client sends to and pulls from our standalone server."""

import base64
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.apache import Apache
from tests.interop.rocketmq_broker import RunningBroker

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]


@contextlib.contextmanager
def our_standalone(home: Path) -> Iterator[str]:
    """The program itself, on free ports; gives the name server's address."""
    command = [sys.executable, "-m", "skyrocket", "standalone", "--namesrv-port", "0", "--listen-port", "0"]
    command += ["--broker-ip", "127.0.0.1", "--store", str(home / "store")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "HOME": str(home)})
    try:
        assert process.stdout is not None
        ready = re.search(r"namesrv=\S+:(\d+)", process.stdout.readline())
        assert ready is not None
        yield f"127.0.0.1:{ready[1]}"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.requirement("C047")
def test_rocketmqs_client_sends_and_pulls(tmp_path: Path, apache: Apache) -> None:
    bodies = [_base64(body) for body in (b"first", "zweite – ✓".encode(), bytes(10_000))]
    send = [{"topic": "Orders", "body": body, "keys": "k1 k2", "tags": "订单"} for body in bodies]
    with our_standalone(tmp_path) as name_server:
        client = RunningBroker(apache, name_server)
        sent = client.exchange([], send)
        assert [line["status"] for line in sent.of("sent")] == ["SEND_OK"] * len(bodies)
        pulled = client.exchange(["Orders"], [])
    assert sorted(line["body"] for line in pulled.messages) == sorted(bodies)
    assert {line["properties"]["TAGS"] for line in pulled.messages} == {"订单"}
    assert {line["properties"]["CLUSTER"] for line in pulled.messages} == {"DefaultCluster"}


@pytest.mark.requirement("C006", "C007")
def test_rocketmqs_push_consumers_get_everything_once_and_in_order(tmp_path: Path, apache: Apache) -> None:
    count = 40
    with our_standalone(tmp_path) as name_server:
        done = apache.run("PushClient", name_server, "Orders", str(count), stdin="", timeout_s=90)
    assert done.exit_code == 0, done.stderr[-4000:]
    lines = [line.split(" ") for line in done.stdout.splitlines() if line.startswith(("concurrent ", "orderly "))]
    singles, batch, oneway = ([f"{kind}-{i}" for i in range(count)] for kind in ("single", "batch", "oneway"))
    concurrent = sorted(line[1] for line in lines if line[0] == "concurrent")
    assert concurrent == sorted(["first", *singles[::2], *batch, *oneway])
    orderly = [(int(line[1]), int(line[2]), line[3]) for line in lines if line[0] == "orderly"]
    assert sorted(body for _, _, body in orderly) == sorted(["first", *singles, *batch, *oneway])
    for queue_id in {line[0] for line in orderly}:
        offsets = [offset for queue, offset, _ in orderly if queue == queue_id]
        assert offsets == list(range(len(offsets)))


def _base64(body: bytes) -> str:
    return base64.b64encode(body).decode()
