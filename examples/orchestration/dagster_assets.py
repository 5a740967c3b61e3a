"""Dagster: a pipeline's file as an asset, and the backlog of a group as a check of it.

    pip install dagster 'skyrocket[spark]'
    dagster dev -f examples/orchestration/dagster_assets.py

The jobs are run as commands, so Dagster and Skyrocket may live in different environments (SKYROCKET names the program).
A command's exit code is its verdict: 0 nothing to look at, 2 findings, 1 it failed.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import dagster as dg

PROGRAM = os.environ.get("SKYROCKET", "skyrocket")
NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
PIPELINE = os.environ.get("PIPELINE", "revenue.yml")
GROUP = os.environ.get("GROUP", "Billing")
FINDINGS = 2


def run_job(*arguments: str) -> dict[str, Any]:
    """The report of `skyrocket pipeline …`; raises dagster.Failure with the command's own sentence."""
    with tempfile.TemporaryDirectory() as out:
        command = [PROGRAM, "pipeline", *arguments, "-n", NAME_SERVERS, "--out", out]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode not in (0, FINDINGS):
            raise dg.Failure(ended.stderr.strip() or f"{command} ended with {ended.returncode}")
        report: dict[str, Any] = json.loads((Path(out) / "report.json").read_text())
        return report


@dg.asset(description="What the pipeline's file writes, up to now")
def revenue(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    command = [PROGRAM, "pipeline", "run", PIPELINE, "--once", "--json", "-n", NAME_SERVERS]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise dg.Failure(ended.stderr.strip())
    batches = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    context.log.info("%d batches", len(batches))
    return dg.MaterializeResult(metadata={"batches": len(batches), "rows": sum(each["rows_in"] for each in batches)})


@dg.asset(description="Dead letters of the group by cause")
def dead_letters() -> dg.MaterializeResult:
    report = run_job("dlq", GROUP)
    return dg.MaterializeResult(metadata={"letters": report["letters"], "causes": len(report["rows"]["causes"])})


@dg.asset_check(asset=revenue, description="The group is not behind")
def keeps_up() -> dg.AssetCheckResult:
    report = run_job("lag", GROUP, "--max-messages", "1000")
    behind = sum(row["messages"] for row in report["rows"]["groups"])
    return dg.AssetCheckResult(passed=report["findings"] == 0, metadata={"messages behind": behind})


definitions = dg.Definitions(assets=[revenue, dead_letters], asset_checks=[keeps_up])
