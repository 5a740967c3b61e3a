"""Where a topic's queues are, which brokers a cluster has.

The only body with a negotiated form: requesters from 4.9.4 on get strict JSON (quoted keys, maps sorted), older ones
and the Go client the dialect with unquoted numbers. Neither may contain a blank: the Go client cuts the raw text.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import orjson

from skyrocket.fastjson import Dialect, Json
from skyrocket.fastjson.bean import FLAG, INTEGER, INTEGER_KEY, TEXT, TEXT_KEY, Field, bean, list_of, map_of, tuple_of
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body
from skyrocket.protocol.bodies.kinds import ANYTHING
from skyrocket.protocol.codes import Version


@body
class BrokerData(BodyBase):
    """One broker name with its addresses by broker id; id 0 is the master."""

    broker_name: str = ""
    cluster: str | None = None
    addresses: Mapping[int, str] = field(default_factory=dict)
    enable_acting_master: bool = False
    zone_name: str | None = None


@body
class QueueData(BodyBase):
    """How many queues of a topic a broker has, and what may be done with them."""

    broker_name: str = ""
    read_queues: int = 0
    write_queues: int = 0
    permission: int = 0
    topic_sys_flag: int = 0


@body
class TopicRoute(BodyBase):
    """`order_topic_conf` is `broker-a:4;broker-b:4`: the queues of an ordered topic, whether brokers live or not."""

    brokers: tuple[BrokerData, ...] = ()
    queues: tuple[QueueData, ...] = ()
    filter_servers: Mapping[str, list[str]] = field(default_factory=dict)
    order_topic_conf: str | None = None
    mappings_by_broker: Mapping[str, Any] | None = None


@body
class ClusterInfo(BodyBase):
    """All brokers by name, and the names by cluster."""

    brokers: Mapping[str, BrokerData] = field(default_factory=dict)
    clusters: Mapping[str, list[str]] = field(default_factory=dict)


@body
class BrokerMembers(BodyBase):
    """The addresses of one broker name, for the brokers of that name themselves."""

    cluster: str | None = None
    broker_name: str | None = None
    addresses: Mapping[int, str] = field(default_factory=dict)


@body
class BrokerMemberGroup(BodyBase):
    """The answer to GET_BROKER_MEMBER_GROUP."""

    members: BrokerMembers = field(default_factory=BrokerMembers)


_BROKER_DATA = bean(
    BrokerData,
    Field("brokerAddrs", "addresses", map_of(INTEGER_KEY, TEXT)),
    Field("brokerName", "broker_name", TEXT),
    Field("cluster", "cluster", TEXT),
    Field("enableActingMaster", "enable_acting_master", FLAG, since_5=True),
    Field("zoneName", "zone_name", TEXT),
)
_QUEUE_DATA = bean(
    QueueData,
    Field("brokerName", "broker_name", TEXT),
    Field("perm", "permission", INTEGER),
    Field("readQueueNums", "read_queues", INTEGER),
    Field("topicSysFlag", "topic_sys_flag", INTEGER),
    Field("writeQueueNums", "write_queues", INTEGER),
)
TOPIC_ROUTE = JsonBody(
    bean(
        TopicRoute,
        Field("brokerDatas", "brokers", tuple_of(_BROKER_DATA)),
        Field("filterServerTable", "filter_servers", map_of(TEXT_KEY, list_of(TEXT))),
        Field("orderTopicConf", "order_topic_conf", TEXT),
        Field("queueDatas", "queues", tuple_of(_QUEUE_DATA)),
        Field("topicQueueMappingByBroker", "mappings_by_broker", map_of(TEXT_KEY, ANYTHING)),
    )
)
CLUSTER_INFO = JsonBody(
    bean(
        ClusterInfo,
        Field("brokerAddrTable", "brokers", map_of(TEXT_KEY, _BROKER_DATA)),
        Field("clusterAddrTable", "clusters", map_of(TEXT_KEY, list_of(TEXT))),
    )
)
BROKER_MEMBER_GROUP = JsonBody(
    bean(
        BrokerMemberGroup,
        Field(
            "brokerMemberGroup",
            "members",
            bean(
                BrokerMembers,
                Field("brokerAddrs", "addresses", map_of(INTEGER_KEY, TEXT)),
                Field("brokerName", "broker_name", TEXT),
                Field("cluster", "cluster", TEXT),
            ),
        ),
    )
)


def wants_strict_route(requester_version: int, accept_standard_json_only: bool | None) -> bool:
    """Which of the two forms a requester gets."""
    return requester_version >= Version.V4_9_4 or bool(accept_standard_json_only)


def encode_route(route: TopicRoute, *, strict: bool) -> bytes:
    """The body of a route answer."""
    if not strict:
        return TOPIC_ROUTE.encode(route)
    return orjson.dumps(_sorted(TOPIC_ROUTE.kind.write(route, Dialect.COMPACT)), option=orjson.OPT_NON_STR_KEYS)


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (isinstance(key, str), key))
        return {key: _sorted(value[key]) for key in keys}
    return [_sorted(part) for part in value] if isinstance(value, list) else value
