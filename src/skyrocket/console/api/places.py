"""Where things are: clusters and brokers, how long messages are kept, and where Prometheus finds the metrics."""

from dataclasses import dataclass
from typing import Final

from skyrocket.client.admin.places import all_places
from skyrocket.console.api.endpoint import Call, Family

family = Family("Places")

_PROMETHEUS: Final = "PROM"


@dataclass(frozen=True, slots=True)
class BrokerChoice:
    """A broker with a master, and its cluster."""

    broker: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Places:
    """What one chooses from when something is created."""

    clusters: list[str]
    brokers: list[BrokerChoice]
    retention_hours: list[int]  # fileReservedTime of brokers: the different values, smallest first


@family.get("/api/places")
async def places(call: Call) -> Places:
    """Clusters with their brokers, and how long these keep messages."""
    view = call.parts.view
    cluster = await view.cluster.get()
    masters = [BrokerChoice(place.broker_name, place.cluster) for place in all_places(cluster) if place.is_master]
    hours = {each.get("fileReservedTime", "") for each in (await view.settings.get()).values()}
    return Places(sorted(cluster.clusters), masters, sorted(int(text) for text in hours if text.isdecimal()))


@dataclass(frozen=True, slots=True)
class MetricsPlace:
    """One broker; `address` is "" where it serves no metrics, or on a port that only its log tells."""

    broker: str
    exporter: str  # DISABLE, PROM, …; "" where it does not say
    address: str


@dataclass(frozen=True, slots=True)
class MetricsPlaces:
    """All brokers that are up."""

    rows: list[MetricsPlace]


@family.get("/api/metrics-places")
async def metrics_places(call: Call) -> MetricsPlaces:
    """Where Prometheus scrapes each broker."""
    settings = await call.parts.view.settings.get()
    rows = []
    for state in await call.parts.view.brokers.get():
        known = settings.get(state.address, {})
        exporter, port = known.get("metricsExporterType", ""), known.get("metricsPromExporterPort", "")
        serves = exporter == _PROMETHEUS and port not in ("", "0")
        host = known.get("metricsPromExporterHost") or state.address.rpartition(":")[0]
        address = f"http://{host}:{port}/metrics" if serves else ""
        rows.append(MetricsPlace(f"{state.broker}:{state.broker_id}", exporter, address))
    return MetricsPlaces(rows)
