"""Where a topic's queues are, which brokers a cluster has.

The only body with a negotiated form: requesters from 4.9.4 on get strict JSON (quoted keys, maps sorted), older ones
and the Go client the dialect with unquoted numbers. Neither may contain a blank: the Go client cuts the raw text.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any

import orjson

from skyrocket.fastjson import Dialect, Json
from skyrocket.fastjson.bean import SINCE_5, bean_of
from skyrocket.protocol.bodies.json_body import BodyBase, body
from skyrocket.protocol.codes import Version


@body
class BrokerData(BodyBase):
    """One broker name with its addresses by broker id; id 0 is the master."""

    broker_name: str = ""
    cluster: str | None = None
    addresses: Annotated[Mapping[int, str], "brokerAddrs"] = field(default_factory=dict)
    enable_acting_master: Annotated[bool, SINCE_5] = False
    zone_name: str | None = None


@body
class QueueData(BodyBase):
    """How many queues of a topic a broker has, and what may be done with them."""

    broker_name: str = ""
    read_queues: Annotated[int, "readQueueNums"] = 0
    write_queues: Annotated[int, "writeQueueNums"] = 0
    permission: Annotated[int, "perm"] = 0
    topic_sys_flag: int = 0


@body
class TopicRoute(BodyBase):
    """`order_topic_conf` is `broker-a:4;broker-b:4`: the queues of an ordered topic, whether brokers live or not."""

    brokers: Annotated[tuple[BrokerData, ...], "brokerDatas"] = ()
    queues: Annotated[tuple[QueueData, ...], "queueDatas"] = ()
    filter_servers: Annotated[Mapping[str, list[str]], "filterServerTable"] = field(default_factory=dict)
    order_topic_conf: str | None = None
    mappings_by_broker: Annotated[Mapping[str, Any] | None, "topicQueueMappingByBroker"] = None


@body
class ClusterInfo(BodyBase):
    """All brokers by name, and the names by cluster."""

    brokers: Annotated[Mapping[str, BrokerData], "brokerAddrTable"] = field(default_factory=dict)
    clusters: Annotated[Mapping[str, list[str]], "clusterAddrTable"] = field(default_factory=dict)


@body
class BrokerMembers(BodyBase):
    """The addresses of one broker name, for the brokers of that name themselves."""

    cluster: str | None = None
    broker_name: str | None = None
    addresses: Annotated[Mapping[int, str], "brokerAddrs"] = field(default_factory=dict)


@body
class BrokerMemberGroup(BodyBase):
    """The answer to GET_BROKER_MEMBER_GROUP."""

    members: Annotated[BrokerMembers, "brokerMemberGroup"] = field(default_factory=BrokerMembers)


def wants_strict_route(requester_version: int, accept_standard_json_only: bool | None) -> bool:
    """Which of the two forms a requester gets."""
    return requester_version >= Version.V4_9_4 or bool(accept_standard_json_only)


def encode_route(route: TopicRoute, *, strict: bool) -> bytes:
    """The body of a route answer."""
    if not strict:
        return route.encode()
    return orjson.dumps(_sorted(bean_of(TopicRoute).write(route, Dialect.COMPACT)), option=orjson.OPT_NON_STR_KEYS)


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (isinstance(key, str), key))
        return {key: _sorted(value[key]) for key in keys}
    return [_sorted(part) for part in value] if isinstance(value, list) else value
