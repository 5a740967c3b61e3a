"""Brokers as operators name them: a cluster, a broker's name, an address, or all."""

from collections.abc import Iterator
from typing import NamedTuple

from skyrocket.client.core.errors import ClientError, NotFound
from skyrocket.client.core.routes import MASTER_ID
from skyrocket.model.words import said
from skyrocket.protocol.bodies.route import ClusterInfo


class BrokerPlace(NamedTuple):
    """One broker process; cluster and name are empty when it is known by its address alone."""

    cluster: str
    broker_name: str
    broker_id: int
    address: str

    @property
    def is_master(self) -> bool:
        return self.broker_id == MASTER_ID

    def __str__(self) -> str:
        return f"{self.broker_name} ({self.address})" if self.broker_name else self.address


def all_places(info: ClusterInfo) -> Iterator[BrokerPlace]:
    """Every broker, sorted by cluster, name and id."""
    for cluster, names in sorted(info.clusters.items()):
        for name in sorted(names):
            data = info.brokers.get(name)
            for broker_id, address in sorted(data.addresses.items()) if data is not None else ():
                yield BrokerPlace(cluster, name, broker_id, address)


def topics_named_after(info: ClusterInfo) -> set[str]:
    """Topics of the system that brokers name after themselves and their cluster, for replies too."""
    return {*info.clusters, *info.brokers, *(f"{cluster}_REPLY_TOPIC" for cluster in info.clusters)}


def places_in(
    info: ClusterInfo, name_servers: str, *, cluster: str | None, broker: str | None, with_slaves: bool
) -> list[BrokerPlace]:
    """Those of a cluster, or of a broker's name, or all; raises NotFound, or ClientError for none."""
    known = list(all_places(info))
    if cluster is not None and cluster not in info.clusters:
        raise NotFound(
            "cluster {cluster} is not known; there are {names}",
            cluster=cluster,
            names=", ".join(sorted(info.clusters)) or said("none"),
        )
    found = [
        place
        for place in known
        if cluster in (None, place.cluster) and broker in (None, place.broker_name) and (with_slaves or place.is_master)
    ]
    if not found:
        named = said(" under the name {broker}", broker=broker) if broker else ""
        kind = said("broker") if with_slaves else said("broker with a master")
        raise (NotFound if broker else ClientError)(
            "no {kind} is registered at {name_servers}{named}: start one, or check the names; "
            "one that was started just now takes a moment",
            kind=kind,
            name_servers=name_servers,
            named=named,
        )
    return found
