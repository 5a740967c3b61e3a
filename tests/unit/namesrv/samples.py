"""Brokers and registrations for the tests of the name server."""

from collections.abc import Mapping

from skyrocket.model.data_version import DataVersion
from skyrocket.model.topic_config import TopicConfig
from skyrocket.namesrv.route_table import BrokerIdentity
from skyrocket.protocol.bodies.registration import BrokerRegistration
from skyrocket.protocol.bodies.topics import TopicTable

CLUSTER = "DefaultCluster"


def broker(
    name: str = "broker-a",
    broker_id: int = 0,
    address: str | None = None,
    *,
    cluster: str = CLUSTER,
    acting: bool | None = False,
    zone: str | None = None,
    timeout_seconds: float = 120.0,
) -> BrokerIdentity:
    address = address or f"{name}-{broker_id}:10911"
    return BrokerIdentity(
        cluster, name, broker_id, address, f"{address}-ha", zone, acting, timeout_seconds=timeout_seconds
    )


def topic(name: str, *, permission: int = 6, queues: int = 4, sys_flag: int = 0) -> TopicConfig:
    return TopicConfig(name, read_queues=queues, write_queues=queues, permission=permission, sys_flag=sys_flag)


def registration(
    *topics: TopicConfig | str,
    counter: int = 1,
    state_version: int = 0,
    filters: tuple[str, ...] | None = (),
    mappings: Mapping[str, object] | None = None,
) -> BrokerRegistration:
    configs = [topic(t) if isinstance(t, str) else t for t in topics]
    version = DataVersion(state_version, counter, 1_700_000_000_000)
    table = TopicTable(version, {config.name: config for config in configs}, mapping_infos=mappings)
    return BrokerRegistration(table, filters)
