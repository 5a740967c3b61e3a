"""`skyrocket pipeline dlq`: dead letters by cause. `skyrocket dlq` shows and resends single ones."""

from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.pipeline.options import (
    EngineOptions,
    InputOptions,
    JobClusterOptions,
    SparkOptions,
    WindowOptions,
)
from skyrocket.cli.pipeline.running import job_command

if TYPE_CHECKING:
    from skyrocket.pipeline.report import Report


@job_command
def dlq(
    group: Annotated[list[str] | None, typer.Argument(help="Consumer groups; without one, all.")] = None,
    *,
    window: WindowOptions,
    samples: Annotated[int, typer.Option(min=1, help="Letters to show of each cause.")] = 3,
    place: InputOptions,
    cluster: JobClusterOptions,
    engine: EngineOptions,
    spark: SparkOptions,
) -> "Report":
    """Dead letters of one or all groups by cause, with samples and a list for replay; never deletes.

    Findings: every dead letter. Exit code 0: none, 1: it failed, 2: findings.
    """
    from skyrocket.pipeline.jobs import dlq as job
    from skyrocket.pipeline.jobs.inputs import Topics, messages
    from skyrocket.pipeline.jobs.local import dlq as local
    from skyrocket.pipeline.jobs.local.reading import LocalRead

    source, times = place.input(cluster), window.window()
    groups = group or ()
    in_cluster = isinstance(source, Topics)
    topics = job.topics_in_cluster(cluster.settings(), groups) if in_cluster else job.dead_letter_topics(groups)
    read = LocalRead(source, topics, job.MESSAGE_COLUMNS, times)
    if engine.is_local(spark, lambda: read.amount):
        return engine.said(local.run(read.table(), samples), read.amount)
    with spark.session("dlq") as session:
        return job.run(messages(session, source, topics, job.MESSAGE_COLUMNS, times), samples)
