"""All endpoints."""

from collections.abc import Sequence
from typing import Final

from skyrocket.console.api import (
    access,
    alerts,
    audit,
    brokers,
    clients,
    dead_letters,
    group_changes,
    groups,
    history,
    messages,
    overview,
    pipelines,
    places,
    quotas,
    retries,
    session,
    timers,
    tokens,
    topic_places,
    topic_statistics,
    topics,
    traces,
    transactions,
)
from skyrocket.console.api.endpoint import Endpoint, Family

FAMILIES: Final[Sequence[Family]] = (
    overview.family,
    topics.family,
    topic_places.family,
    topic_statistics.family,
    messages.family,
    groups.family,
    group_changes.family,
    retries.family,
    dead_letters.family,
    timers.family,
    transactions.family,
    traces.family,
    brokers.family,
    clients.family,
    pipelines.family,
    places.family,
    history.family,
    alerts.family,
    access.family,
    quotas.family,
    tokens.family,
    audit.family,
    session.family,
)
ENDPOINTS: Final[Sequence[Endpoint]] = tuple(endpoint for family in FAMILIES for endpoint in family.endpoints)
