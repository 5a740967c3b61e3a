"""Pipelines: groups that go on although no client of theirs is connected, as sources of Spark do.

A source commits its offsets after each batch and leaves. What else Spark knows of a query (its batch, its sink) it does
not tell brokers; queries that report themselves tell it to the name servers.
"""

from dataclasses import dataclass

from skyrocket.client.admin.side_by_side import each
from skyrocket.console.api.endpoint import Call, Family
from skyrocket.console.cluster.groups import figures as group_figures
from skyrocket.model.query_report import QueryReport

family = Family("Pipelines")


@dataclass(frozen=True, slots=True)
class PipelineRow:
    """One group."""

    group: str
    topics: list[str]
    lag: int
    late_ms: int | None
    in_per_second: float | None  # of its topics; None before the second look
    out_per_second: float | None  # what it reads
    offset: int  # the sum of what it has committed; the group's page has each queue
    last_message_ms: int | None  # when the last message that it has read was stored
    moved_ms: int | None  # when it was last seen to go on; None: not since the console began
    queries: list[QueryReport] | None  # newest report first; None: the name servers do not say


@dataclass(frozen=True, slots=True)
class Pipelines:
    """Since the console began."""

    rows: list[PipelineRow]


@family.get("/api/pipelines")
async def pipelines(call: Call) -> Pipelines:
    """Groups that commit without a connected client, as Spark queries and scripts do, or whose queries report."""
    view = call.parts.view
    lags = await view.lags.get()
    reported = await view.queries.get()
    shown = {*view.moved_ms, *(reported or ())} & set(lags)
    members = await each(sorted(shown), view.members.get)
    rows = []
    for group in (name for name, connected in members.items() if connected is None):
        known = group_figures(lags[group], view.waits.since(group), call.now_ms)
        last = max((lag.last_timestamp for lag in lags[group]), default=0) or None
        written = await each(list(known.topics), view.topic_figures.get)
        speeds = [figures.in_per_second for figures in written.values() if figures.in_per_second is not None]
        rows.append(
            PipelineRow(
                group,
                list(known.topics),
                known.lag,
                known.late_ms,
                sum(speeds) if speeds else None,
                view.out_per_second(group),
                known.consumed,
                last,
                view.moved_ms.get(group),
                None if reported is None else list(reported.get(group, ())),
            )
        )
    return Pipelines(rows)
