"""`skyrocket pipeline audit`: log, queues, index and consumer offsets against each other."""

from typing import Annotated

import typer

from skyrocket.cli.options import VerboseOption
from skyrocket.cli.pipeline.options import (
    DEFAULT_MASTER,
    MasterOption,
    OutOption,
    SparkConfOption,
    SplitMbOption,
    StoreArgument,
    spark_settings,
)
from skyrocket.cli.pipeline.running import finish, job_failures_shown


def audit(
    store: StoreArgument,
    business_key: Annotated[
        str | None,
        typer.Option(
            "--business-key",
            help="Also count messages with the same keys, property:NAME or json:$.path as duplicates.",
            show_default=False,
        ),
    ] = None,
    index_slots: Annotated[int, typer.Option(help="The broker's maxHashSlotNum.", min=1)] = 5_000_000,
    settle_seconds: Annotated[
        int, typer.Option(help="What was stored later than that is not expected in queues and index yet.", min=0)
    ] = 60,
    split_mb: SplitMbOption = 256,
    master: MasterOption = DEFAULT_MASTER,
    spark_conf: SparkConfOption = None,
    out: OutOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Log ↔ queues ↔ index ↔ offsets: lost, duplicate, out of order, orphaned, damaged. Reads only.

    Every difference is a finding.
    Exit code 0: none, 1: it failed, 2: findings.
    """
    with job_failures_shown("audit", verbose):
        from skyrocket.pipeline.jobs import audit as job
        from skyrocket.pipeline.jobs.launch import job_session
        from skyrocket.pipeline.rebuild.rules import RebuildRules

        rules = job.AuditRules(RebuildRules(index_slots=index_slots), settle_seconds, business_key)
        with job_session("audit", master, spark_settings(spark_conf)) as spark:
            report = job.run(spark, store, rules, split_mb << 20)
        finish(report, out)
