"""Spark queries as they report themselves to the name servers (`skyrocket.pipeline.report_queries`)."""

from collections.abc import Mapping
from itertools import islice
from typing import Final, TypeAlias

from skyrocket.client.admin.admin import Admin
from skyrocket.client.core.errors import BrokerRefused
from skyrocket.model.query_report import QUERIES, QueryReport, group_of, report_of
from skyrocket.remoting.errors import RemotingError

Queries: TypeAlias = Mapping[str, tuple[QueryReport, ...]]  # by group

_MOST_READ: Final = 5000
_MOST_OF_A_GROUP: Final = 20


async def reported_queries(admin: Admin) -> Queries | None:
    """Newest first; None when the name servers do not say. Values that are no report are passed over."""
    try:
        kept = await admin.values(QUERIES)
    except (BrokerRefused, RemotingError):
        return None
    found: dict[str, list[QueryReport]] = {}
    for key, text in islice(kept.items(), _MOST_READ):
        report = report_of(text)
        if report is not None:
            found.setdefault(group_of(key), []).append(report)
    return {
        group: tuple(sorted(reports, key=lambda report: -report.reported_ms)[:_MOST_OF_A_GROUP])
        for group, reports in found.items()
    }
