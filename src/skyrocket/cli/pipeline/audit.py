"""`skyrocket pipeline audit`: log, queues, index and consumer offsets against each other."""

from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.pipeline.options import Engine, EngineOptions, SparkOptions, SplitMbOption, StoreArgument
from skyrocket.cli.pipeline.running import job_command

if TYPE_CHECKING:
    from skyrocket.pipeline.report import Report


@job_command
def audit(
    store: StoreArgument,
    business_key: Annotated[
        str | None,
        typer.Option(
            "--business-key", help="Also count messages with the same keys, property:NAME or json:$.path as duplicates."
        ),
    ] = None,
    index_slots: Annotated[int, typer.Option(help="The broker's maxHashSlotNum.", min=1)] = 5_000_000,
    settle_seconds: Annotated[
        int, typer.Option(help="What was stored later than that is not expected in queues and index yet.", min=0)
    ] = 60,
    split_mb: SplitMbOption = 256,
    *,
    engine: EngineOptions,
    spark: SparkOptions,
) -> "Report":
    """Log ↔ queues ↔ index ↔ offsets: lost, duplicate, out of order, orphaned, damaged. Reads only.

    Every difference is a finding.
    Exit code 0: none, 1: it failed, 2: findings.
    """
    from skyrocket.pipeline.jobs import audit as job
    from skyrocket.pipeline.jobs.local import audit as local
    from skyrocket.pipeline.jobs.local.reading import log_amount
    from skyrocket.pipeline.jobs.local.repeats import can_find
    from skyrocket.pipeline.rebuild.rules import RebuildRules

    rules = job.AuditRules(RebuildRules(index_slots=index_slots), settle_seconds, business_key)
    needs_spark = engine.engine is Engine.AUTO and business_key is not None and not can_find(business_key)
    if not needs_spark and engine.is_local(spark, lambda: log_amount(store)):
        return engine.said(local.run(store, rules, split_mb << 20), log_amount(store))
    with spark.session("audit") as session:
        return job.run(session, store, rules, split_mb << 20)
