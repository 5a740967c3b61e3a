"""What a requester sees of a topic: its route out of the tables, with a stand-in for a lost master, or of one zone."""

from dataclasses import replace
from typing import Final

from skyrocket.model.permission import PERM_WRITE
from skyrocket.namesrv.route_table import MASTER_ID, BrokerKey, RouteTable
from skyrocket.protocol.bodies.route import BrokerData, QueueData, TopicRoute

_MEMBER_TOPICS: Final = "rmq_sys_SYNC_BROKER_MEMBER_"


def route_of(
    table: RouteTable, topic: str, *, with_acting_masters: bool = False, order_conf: str | None = None
) -> TopicRoute | None:
    """The route; None when no broker that is there has queues of the topic."""
    queues = table.topics.get(topic)
    if not queues:
        return None
    brokers = [table.brokers[name] for name in queues if name in table.brokers]
    if not brokers:
        return None
    if with_acting_masters and not topic.startswith(_MEMBER_TOPICS):
        brokers = [_with_acting_master(broker, queues[broker.broker_name]) for broker in brokers]
    return TopicRoute(
        brokers=tuple(brokers),
        queues=tuple(queues.values()),
        filter_servers=_filter_servers(table, brokers),
        order_topic_conf=order_conf,
        mappings_by_broker=table.mappings.get(topic),
    )


def _with_acting_master(broker: BrokerData, queues: QueueData) -> BrokerData:
    """The member with the smallest id presented as master, so that consumers find one to pull from."""
    addresses = dict(broker.addresses)
    if not addresses or MASTER_ID in addresses or not broker.enable_acting_master or queues.permission & PERM_WRITE:
        return broker
    stand_in = addresses.pop(min(addresses))
    return replace(broker, addresses={MASTER_ID: stand_in, **addresses})


def _filter_servers(table: RouteTable, brokers: list[BrokerData]) -> dict[str, list[str]]:
    if not table.filters:
        return {}
    keys = [BrokerKey(broker.cluster or "", a) for broker in brokers for a in broker.addresses.values()]
    return {key.address: list(table.filters[key]) for key in keys if key in table.filters}


def only_zone(route: TopicRoute, zone: str) -> TopicRoute:
    """The brokers of one zone; those without a master stay wherever they are."""
    gone = [broker for broker in route.brokers if MASTER_ID in broker.addresses and not _is_in(broker, zone)]
    names = {broker.broker_name for broker in gone}
    addresses = {address for broker in gone for address in broker.addresses.values()}
    return replace(
        route,
        brokers=tuple(broker for broker in route.brokers if broker.broker_name not in names),
        queues=tuple(queues for queues in route.queues if queues.broker_name not in names),
        filter_servers={a: servers for a, servers in route.filter_servers.items() if a not in addresses},
    )


def _is_in(broker: BrokerData, zone: str) -> bool:
    return (broker.zone_name or "").lower() == zone.lower()
