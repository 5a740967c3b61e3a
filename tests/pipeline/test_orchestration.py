"""The example for Dagster, in an environment of Dagster's own, with our commands beside it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skyrocket.client import DeadLetter, Message, PushConsumerSettings, ReceivedMessage, blocking
from skyrocket.testing import LocalCluster
from tests import ROOT
from tests.waiting import wait_until

HOME = ROOT / "var" / "dagster"
EXAMPLE = ROOT / "examples" / "orchestration" / "dagster_assets.py"
PIPELINE = """\
name: copy
source: {subscribe: Orders, startingOffsets: earliest, decode: {format: text}}
sink: {format: parquet, path: lake}
"""


def _python() -> Path:
    """An interpreter that has Dagster; skips where it cannot be installed."""
    python = HOME / "bin" / "python"
    if not (HOME / "bin" / "dagster").exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=False, capture_output=True)
        install = [str(python), "-m", "pip", "install", "-q", "dagster"]
        if made.returncode or subprocess.run(install, check=False, timeout=900).returncode:
            pytest.skip("Dagster cannot be installed here")
    return python


def _sell(mq: LocalCluster) -> None:
    """Ten orders, all consumed, one of them buried."""
    consumer = blocking.PushConsumer(
        "Billing", settings=PushConsumerSettings(persist_interval=0.05), client=mq.client_settings
    )

    @consumer.on("Orders")
    def bill(message: ReceivedMessage) -> None:
        if message.body == b"order 3":
            raise DeadLetter("no such article")

    with consumer, mq.producer() as producer:
        for number in range(10):
            producer.send(Message("Orders", f"order {number}".encode()))
        wait_until(lambda: len(mq.dead_letters("Billing")) == 1, "one is buried")
        wait_until(
            lambda: sum(offset for queue, offset in mq.offsets("Billing").items() if queue.topic == "Orders") == 10,
            "the offsets are committed",
        )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_assets_are_made_and_the_check_says_that_the_group_keeps_up(rocketmq: LocalCluster, tmp_path: Path) -> None:
    python = _python()
    rocketmq.create_topic("Orders", queues=2)
    _sell(rocketmq)
    (tmp_path / "copy.yml").write_text(PIPELINE)
    environment = {
        **os.environ,
        "SKYROCKET": str(Path(sys.executable).parent / "skyrocket"),
        "NAMESRV_ADDR": rocketmq.name_server_address,
        "PIPELINE": str(tmp_path / "copy.yml"),
        "GROUP": "Billing",
        "DAGSTER_HOME": str(tmp_path),
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }
    program = Path(__file__).parent / "dagster_run.py"
    ended = subprocess.run(
        [str(python), str(program), str(EXAMPLE)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    told = json.loads(ended.stdout.splitlines()[-1])
    assert told["keeps_up"] is True
    assert told["dead_letters"] == {"letters": 1, "causes": 1}
    assert told["revenue"]["rows"] == 10
