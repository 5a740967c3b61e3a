"""What the broker tells of itself: statistics for tools, `/metrics` for Prometheus, `/ready` for supervisors."""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.statistics.broker_stats import StatisticsProcessor
from skyrocket.broker.statistics.lag import Lag
from skyrocket.broker.statistics.metrics import MessageMetrics
from skyrocket.broker.statistics.runtime_info import RuntimeInfo
from skyrocket.broker.statistics.sampling import Sampling
from skyrocket.observability.exposition import CONTENT_TYPE, Metric, render
from skyrocket.observability.health import Check as Trouble
from skyrocket.observability.health import alive, readiness
from skyrocket.observability.http_endpoint import Page
from skyrocket.remoting.services import Work
from skyrocket.remoting.serving import Handlers


class StatisticsFeature(Feature):
    """Puts together what the store, the tables and all features say."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        store, tables, clock, identity = parts.store, parts.tables, parts.clock, parts.identity
        self.sampling = Sampling(clock, store.statistics, parts.counters, self._forget_unused)
        self.runtime_info = RuntimeInfo(store, self.sampling, clock, parts.classes, parts.features)
        lag = Lag(store, tables, parts.counters, clock, identity.broker_name, parts.slices)
        self._processor = StatisticsProcessor(self.runtime_info, parts.counters, lag, tables, identity, parts.slices)
        self._metrics = MessageMetrics(store, tables, parts.counters, clock)
        self._common_labels = {
            "cluster": identity.cluster_name,
            "node_type": "broker",
            "node_id": identity.broker_name,
            "aggregation": "cumulative",
        }

    def _forget_unused(self) -> None:
        topics, groups = self._parts.tables.topics, self._parts.tables.groups
        if self._parts.config.forget_unused_statistics:
            self._parts.counters.keep_only(
                lambda topic: topics.find(topic) is not None, lambda group: groups.find(group) is not None
            )

    def handlers(self) -> Handlers:
        return self._processor.handlers()

    def services(self) -> tuple[Work, ...]:
        return (self.sampling.run,)

    def metrics(self) -> Iterable[Metric]:
        return self._metrics.collect(with_lag=self._parts.special.are_here)

    def troubles(self) -> Mapping[str, Trouble]:
        return {"store": self._store_trouble}

    def _store_trouble(self) -> str | None:
        store = self._parts.store
        if store.disk_full:
            return f"the disk of {store.paths.root} is full: no messages are taken"
        return store.gate.trouble if store.gate.is_open else store.gate.reason

    def pages(self) -> Mapping[str, Callable[[], Page]]:
        return {"/metrics": self._metrics_page, "/health": alive, "/ready": self._ready_page}

    def _metrics_page(self) -> Page:
        metrics = chain.from_iterable(feature.metrics() for feature in self._parts.features)
        return Page(200, CONTENT_TYPE, render(metrics, self._common_labels))

    def _ready_page(self) -> Page:
        return readiness({name: check for each in self._parts.features for name, check in each.troubles().items()})

    async def open(self) -> None:
        # From now on: what recovery reads again was counted in an earlier life, and what a slave copies by its master.
        if self._parts.is_master:
            self._parts.store.add_listener(self._parts.counters.stored)
