"""Flow control: the bounds of request classes, what waits too long, and the broker's own permission."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Final

from skyrocket.broker.core.feature import Feature, Follow
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.core.request_classes import RequestClasses
from skyrocket.broker.flow.broker_permission import PermissionGate
from skyrocket.broker.flow.fast_failure import FastFailure
from skyrocket.config.sections import BrokerConfig
from skyrocket.observability.exposition import Kind, Metric, single
from skyrocket.observability.health import Check as Trouble
from skyrocket.remoting.services import Work

_CLASS_KEYS: Final = tuple(
    field.metadata["key"] for field in fields(BrokerConfig) if field.name.endswith(("_capacity", "_wait_ms"))
)


class FlowFeature(Feature):
    """Who is refused when; the last of the list that serves, for it stands before the handlers of others."""

    def __init__(self, parts: Parts) -> None:
        self._settings = parts.settings
        self._classes = parts.classes
        self._router, self._server = parts.router, parts.server
        self._topics = parts.tables.topics
        self._gate = PermissionGate(parts.router, parts.identity, parts.tables.topics)
        self._fast_failure = FastFailure(parts.store, parts.classes, parts.workers, enabled=parts.config.fast_failure)
        parts.server.on_turn_end(self._fast_failure.turn_ended)

    def services(self) -> tuple[Work, ...]:
        return (self._fast_failure.run,)

    def follows(self) -> tuple[Follow, ...]:
        return (Follow(self._permission_changed, ("brokerPermission",)), Follow(self._bounds_changed, _CLASS_KEYS))

    def _permission_changed(self) -> None:
        self._gate.set(self._settings.broker.broker_permission)
        self._topics.raise_version()

    def _bounds_changed(self) -> None:
        for used, wanted in zip(self._classes, RequestClasses(self._settings.broker), strict=True):
            used.limit, used.wait_limit_ms = wanted.limit, wanted.wait_limit_ms

    async def open(self) -> None:
        self._gate.set(self._settings.broker.broker_permission)

    async def started(self) -> None:
        self._fast_failure.watch(self._server.turn)

    def troubles(self) -> Mapping[str, Trouble]:
        return {"connections": self._server.door.trouble}

    def metrics(self) -> Iterator[Metric]:
        waiting = Metric("rocketmq_processor_watermark", Kind.GAUGE, "Requests in hand, by class")
        refused = Metric("skyrocket_requests_refused_total", Kind.COUNTER, "Requests refused as busy, by class")
        for each in self._classes:
            waiting.add(each.in_hand, processor=each.name)
            refused.add(each.refused, processor=each.name)
        yield waiting
        yield refused
        yield single("rocketmq_broker_permission", Kind.GAUGE, "4 to read, 2 to write", self._gate.permission)
        requests = Metric("skyrocket_requests_total", Kind.COUNTER, "Requests, by code; without a code: not supported")
        failed = Metric("skyrocket_requests_failed_total", Kind.COUNTER, "Requests that ended in an unexpected error")
        for route in self._router.routes():
            code = "" if route.code is None else str(int(route.code))
            if route.requests:
                requests.add(route.requests, request_code=code)
            if route.failed:
                failed.add(route.failed, request_code=code)
        yield requests
        yield failed
        yield single("skyrocket_connections", Kind.GAUGE, "Open connections", self._server.connection_count)
        yield single(
            "skyrocket_connections_refused_total",
            Kind.COUNTER,
            "Connections that found no place, for all or for their address",
            self._server.counters.refused,
        )
