"""What a name server tells over HTTP: `/health`, `/ready` and a few numbers."""

from collections.abc import Iterator

from skyrocket.controller.observation import ControllerObservation
from skyrocket.namesrv.route_table import RouteTable
from skyrocket.observability.exposition import CONTENT_TYPE, Kind, Metric, render, single
from skyrocket.observability.health import alive, readiness
from skyrocket.observability.http_endpoint import HttpEndpoint, Page
from skyrocket.remoting.server import RemotingServer


def endpoint(
    table: RouteTable, server: RemotingServer, controller: ControllerObservation | None = None
) -> HttpEndpoint:
    """Ready is a name server as soon as it listens, and it listens before this does; its controller must be, too."""
    checks = {} if controller is None else {"controller": controller.why_not_ready}

    def metrics() -> Page:
        page = render(_metrics(table, server), {"node_type": "namesrv"})
        if controller is not None:
            page += render(controller.metrics(), {"node_type": "controller"})
        return Page(200, CONTENT_TYPE, page)

    return HttpEndpoint({"/metrics": metrics, "/health": alive, "/ready": lambda: readiness(checks)})


def _metrics(table: RouteTable, server: RemotingServer) -> Iterator[Metric]:
    for name, help_text, value in (
        ("skyrocket_namesrv_brokers", "Brokers that are alive", len(table.live)),
        ("skyrocket_namesrv_topics", "Topics that some broker serves", len(table.topics)),
        ("skyrocket_connections", "Open connections", server.connection_count),
    ):
        yield single(name, Kind.GAUGE, help_text, value)
    requests = Metric("skyrocket_requests_total", Kind.COUNTER, "Requests, by code; without a code: not supported")
    for route in server.router.routes():
        if route.requests:
            requests.add(route.requests, request_code="" if route.code is None else str(int(route.code)))
    yield requests
