"""Log files of the broker processes of one command: one each, or they would rotate it away from each other."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from skyrocket.cli.fleet.plan import BrokerPlan
from skyrocket.observability.logs import LogSettings


def with_own_logs(plans: list[BrokerPlan], log: Sequence[str] | None) -> list[BrokerPlan]:
    """The plans with `--log` as the parent was told, and a file beside the parent's where it has one."""
    if len(plans) == 1:
        return plans
    file = LogSettings.of(os.environ, log or ()).file
    shared = [part for option in log or () for part in ("--log", option)]
    return [
        replace(plan, arguments=(*plan.arguments, *shared, *(_own(plan, file) if file is not None else ())))
        for plan in plans
    ]


def _own(plan: BrokerPlan, file: Path) -> tuple[str, str]:
    """sky.log ▸ sky-broker-a.log, and sky-broker-a-1.log for the first copy of its log."""
    number = f"-{plan.broker_id}" if plan.broker_id else ""
    return "--log", f"file={file.with_name(f'{file.stem}-{plan.name}{number}{file.suffix}')}"
