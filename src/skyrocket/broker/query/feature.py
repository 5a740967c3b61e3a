"""Queries: messages by key and id, and what stands in a queue."""

from collections.abc import Mapping

from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.query.query import QueryProcessor
from skyrocket.broker.query.queue_entries import QueueEntryProcessor
from skyrocket.remoting.serving import Handlers


class QueryFeature(Feature):
    """Searches run in threads of their own: a slow disk must not hold up the event loop."""

    def __init__(self, parts: Parts) -> None:
        self._query = QueryProcessor(parts.store, parts.store.config.default_query_results)
        self._entries = QueueEntryProcessor(parts.store, parts.tables.consumers)
        self._workers = parts.workers

    def handlers(self) -> Handlers:
        return (*self._query.handlers(), *self._entries.handlers())

    def runtime_rows(self) -> Mapping[str, str]:
        return {"queryThreadPoolQueueHeadWaitTimeMills": str(self._workers.head_wait_ms)}
