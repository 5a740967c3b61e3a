"""The examples for Dagster and Airflow, each in an environment of its own, with our commands beside it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skyrocket.client import DeadLetter, Message, PushConsumerSettings, ReceivedMessage, blocking
from skyrocket.testing import LocalCluster
from tests import ROOT
from tests.waiting import wait_until

EXAMPLES = ROOT / "examples" / "orchestration"
PIPELINE = """\
name: copy
source: {subscribe: Orders, startingOffsets: earliest, decode: {format: text}}
sink: {format: parquet, path: lake}
"""


def _python(package: str, program: str) -> Path:
    """An interpreter that has the package; skips where it cannot be installed."""
    home = ROOT / "var" / program
    python = home / "bin" / "python"
    if not (home / "bin" / program).exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(home)], check=False, capture_output=True)
        install = [str(python), "-m", "pip", "install", "-q", package]
        if made.returncode or subprocess.run(install, check=False, timeout=900).returncode:
            pytest.skip(f"{package} cannot be installed here")
    return python


def _environment(mq: LocalCluster, home: Path) -> dict[str, str]:
    """What the examples are told, and homes of the orchestrators that vanish."""
    (home / "copy.yml").write_text(PIPELINE)
    return {
        **os.environ,
        "SKYROCKET": str(Path(sys.executable).parent / "skyrocket"),
        "NAMESRV_ADDR": mq.name_server_address,
        "PIPELINE": str(home / "copy.yml"),
        "GROUP": "Billing",
        "DAGSTER_HOME": str(home),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "AIRFLOW_HOME": str(home / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }


def _told(python: Path, program: str, example: str, environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    """What the program of ours printed last, run by their interpreter."""
    command = [str(python), str(Path(__file__).parent / program), str(EXAMPLES / example), *arguments]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    told: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return told


def _sell(mq: LocalCluster, already: int = 0) -> None:
    """Ten orders, consumed with those that are there already, one of the ten buried."""
    buried = len(mq.dead_letters("Billing"))
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
        wait_until(lambda: len(mq.dead_letters("Billing")) == buried + 1, "one is buried")
        wait_until(
            lambda: (
                sum(offset for queue, offset in mq.offsets("Billing").items() if queue.topic == "Orders")
                == already + 10
            ),
            "the offsets are committed",
        )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_assets_are_made_and_the_check_says_that_the_group_keeps_up(rocketmq: LocalCluster, tmp_path: Path) -> None:
    python = _python("dagster", "dagster")
    rocketmq.create_topic("Orders", queues=2)
    _sell(rocketmq)
    told = _told(python, "dagster_run.py", "dagster_assets.py", _environment(rocketmq, tmp_path))
    assert told["keeps_up"] is True
    assert told["dead_letters"] == {"letters": 1, "causes": 1}
    assert told["revenue"]["rows"] == 10


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_sensor_of_airflow_waits_for_the_group_and_the_operator_runs_the_file(
    rocketmq: LocalCluster, tmp_path: Path
) -> None:
    python = _python("apache-airflow>=3", "airflow")
    rocketmq.create_topic("Orders", queues=2)
    _sell(rocketmq)
    environment = _environment(rocketmq, tmp_path)
    with rocketmq.producer() as producer:
        producer.send(Message("Orders", b"order 10"))
    behind = _told(python, "airflow_run.py", "airflow_dag.py", environment)
    assert behind == {"order": [["revenue"]], "caught_up": False}
    _sell(rocketmq, already=11)
    told = _told(python, "airflow_run.py", "airflow_dag.py", environment, "revenue")
    assert told["caught_up"] is True
    assert told["revenue"]["rows"] == 21
