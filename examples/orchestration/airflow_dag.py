"""Airflow 3: wait until a group has caught up, then run a pipeline's file over what is there.

    pip install apache-airflow          # in its own environment
    cp examples/orchestration/airflow_dag.py $AIRFLOW_HOME/dags/

The jobs are run as commands, so Airflow and Skyrocket may live in different environments (SKYROCKET names the program).
A command's exit code is its verdict: 0 nothing to look at, 2 findings, 1 it failed.
"""

import json
import os
import subprocess
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator, BaseSensorOperator

PROGRAM = os.environ.get("SKYROCKET", "skyrocket")
NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
PIPELINE = os.environ.get("PIPELINE", "revenue.yml")
GROUP = os.environ.get("GROUP", "Billing")
FINDINGS = 2


def run_program(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """`skyrocket pipeline …`; raises RuntimeError with the command's own sentence, and Airflow tries again."""
    command = [PROGRAM, "pipeline", *arguments, "-n", NAME_SERVERS]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, FINDINGS):
        raise RuntimeError(ended.stderr.strip() or f"{command} ended with {ended.returncode}")
    return ended


class LagSensor(BaseSensorOperator):
    """Waits until a group is behind by no more than so many messages in a topic."""

    template_fields = ("group",)

    def __init__(self, *, group: str, max_messages: int = 0, **others: Any) -> None:
        super().__init__(**others)
        self.group = group
        self.max_messages = max_messages

    def poke(self, context: Any) -> bool:
        with tempfile.TemporaryDirectory() as out:
            run_program("lag", self.group, "--max-messages", str(self.max_messages), "--out", out)
            report = json.loads((Path(out) / "report.json").read_text())
        behind = [row["messages"] for row in report["rows"]["groups"]]
        self.log.info("%s is %d messages behind", self.group, sum(behind))
        return all(messages <= self.max_messages for messages in behind)


class PipelineOperator(BaseOperator):
    """Runs a pipeline's file over what is there; gives the number of its batches and of the rows that they read."""

    template_fields = ("file",)

    def __init__(self, *, file: str, **others: Any) -> None:
        super().__init__(**others)
        self.file = file

    def execute(self, context: Any) -> dict[str, int]:
        printed = run_program("run", self.file, "--once", "--json").stdout.splitlines()
        batches = [json.loads(line) for line in printed if line.startswith("{")]
        return {"batches": len(batches), "rows": sum(each["rows_in"] for each in batches)}


with DAG("revenue", schedule=timedelta(hours=1), catchup=False) as dag:
    # Between two looks the sensor gives its place to others.
    caught_up = LagSensor(task_id="caught_up", group=GROUP, mode="reschedule", poke_interval=60, timeout=3600)
    # Two runs at once would share a checkpoint.
    revenue = PipelineOperator(task_id="revenue", file=PIPELINE, retries=2, max_active_tis_per_dag=1)
    caught_up >> revenue
