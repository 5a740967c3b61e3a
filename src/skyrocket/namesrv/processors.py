"""A method per request. What is refused raises; the router answers with its code and remark."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from skyrocket.clock import Clock
from skyrocket.namesrv.known_registrations import KnownRegistrations
from skyrocket.namesrv.kv_config import ORDER_TOPICS, KvConfig
from skyrocket.namesrv.route_table import (
    DEFAULT_TIMEOUT_SECONDS,
    BrokerIdentity,
    BrokerKey,
    MinBrokerChange,
    RouteTable,
)
from skyrocket.namesrv.route_view import only_zone, route_of, zone_wanted
from skyrocket.namesrv.settings import LiveSettings
from skyrocket.protocol.bodies.registration import body_crc
from skyrocket.protocol.bodies.route import (
    BROKER_MEMBER_GROUP,
    CLUSTER_INFO,
    TOPIC_ROUTE,
    BrokerMemberGroup,
    BrokerMembers,
    ClusterInfo,
    encode_route,
    wants_strict_route,
)
from skyrocket.protocol.bodies.tables import KV_TABLE, KvTable
from skyrocket.protocol.bodies.topics import DATA_VERSION, TOPIC_LIST, TopicList
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.errors import SystemFailure, TopicNotExist
from skyrocket.protocol.requests.broker_registration import (
    BrokerHeartbeat,
    GetBrokerMemberGroup,
    QueryDataVersion,
    QueryDataVersionAnswer,
    RegisterBroker,
    RegisterBrokerAnswer,
    UnregisterBroker,
)
from skyrocket.protocol.requests.header import Header, Request
from skyrocket.protocol.requests.kv_config import (
    DeleteKvConfig,
    GetKvConfig,
    GetKvConfigAnswer,
    GetKvListByNamespace,
    GetNamesrvConfig,
    PutKvConfig,
    UpdateNamesrvConfig,
)
from skyrocket.protocol.requests.route import (
    AddWritePerm,
    AddWritePermAnswer,
    DeleteTopicInNamesrv,
    GetAllTopicList,
    GetBrokerClusterInfo,
    GetHasUnitSubTopicList,
    GetHasUnitSubUnunitTopicList,
    GetRouteInfoByTopic,
    GetSystemTopicList,
    GetTopicsByCluster,
    GetUnitTopicList,
    RegisterTopicInNamesrv,
    WipeWritePerm,
    WipeWritePermAnswer,
)
from skyrocket.remoting.admission import RequestClass
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router

_logger = logging.getLogger(__name__)

FAQ: Final = "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
_UNSET_REMARK: Final = "not set any response code"  # RocketMQ: left over in answers that are successes
_MAX_KEPT_ROUTES: Final = 10_000

TellBrokers = Callable[[Iterable[MinBrokerChange]], None]


def register_all(
    router: Router, settings: LiveSettings, routes: "RouteProcessor", others: "Iterable[Processor]"
) -> None:
    """Route queries have a bound of their own, so that neither side can starve the other."""
    config = settings.config
    router.register(GetRouteInfoByTopic.code, routes.route, RequestClass("routes", config.route_queue_capacity))
    rest = RequestClass("default", config.queue_capacity)
    for processor in others:
        for request, handler in processor.handlers().items():
            router.register(request.code, handler, rest)


Handler = Callable[[Peer, RemotingCommand], RemotingCommand]


class Processor:
    """Some requests of one family."""

    def handlers(self) -> Mapping[type[Request[Any]], Handler]:
        """Who answers what."""
        raise NotImplementedError


class RouteProcessor:
    """Where a topic's queues are: the one question of clients. Encoded answers are kept until a table changes."""

    def __init__(self, table: RouteTable, kv: KvConfig, settings: LiveSettings, clock: Clock) -> None:
        self._table = table
        self._kv = kv
        self._settings = settings
        self._clock = clock
        self._started_at = clock.monotonic()
        self._kept: dict[tuple[str, bool], bytes] = {}
        self._kept_of: tuple[int, int, int] = (0, 0, 0)

    def route(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_ROUTEINFO_BY_TOPIC."""
        self._check_ready()
        header = GetRouteInfoByTopic.from_fields(request.ext_fields)
        topic = header.topic if header.topic is not None else "null"
        zone = zone_wanted(request.ext_fields)
        strict = wants_strict_route(request.version, header.accept_standard_json_only)
        body = self._body(topic, strict) if zone is None else self._zone_body(topic, zone)
        if body is None:
            raise TopicNotExist(f"No topic route info in name server for the topic: {topic}\n{FAQ}")
        return request.answer(ResponseCode.SUCCESS, body=body)

    def _check_ready(self) -> None:
        config = self._settings.config
        if config.wait_for_service and self._clock.monotonic() - self._started_at < config.wait_seconds:
            raise SystemFailure("name server not ready")

    def _body(self, topic: str, strict: bool) -> bytes | None:
        version = (self._table.changes, self._kv.changes, self._settings.changes)
        if version != self._kept_of or len(self._kept) >= _MAX_KEPT_ROUTES:
            self._kept.clear()
            self._kept_of = version
        body = self._kept.get((topic, strict))
        if body is None:
            route = self._route(topic)
            if route is None:
                return None
            body = self._kept[topic, strict] = encode_route(route, strict=strict)
        return body

    def _zone_body(self, topic: str, zone: str) -> bytes | None:
        route = self._route(topic)
        # RocketMQ writes filtered routes in the dialect, whoever asks.
        return None if route is None else encode_route(only_zone(route, zone), strict=False)

    def _route(self, topic: str) -> Any:
        config = self._settings.config
        order_conf = self._kv.get(ORDER_TOPICS, topic) if config.order_messages else None
        return route_of(self._table, topic, with_acting_masters=config.support_acting_master, order_conf=order_conf)


class BrokerProcessor(Processor):
    """Brokers come, show that they live, and go."""

    def __init__(
        self, table: RouteTable, kv: KvConfig, settings: LiveSettings, clock: Clock, tell_brokers: TellBrokers
    ) -> None:
        self._table = table
        self._kv = kv
        self._settings = settings
        self._clock = clock
        self._tell_brokers = tell_brokers
        self._known = KnownRegistrations(table.live)

    def handlers(self) -> Mapping[type[Request[Any]], Handler]:
        return {
            RegisterBroker: self.register,
            UnregisterBroker: self.unregister,
            QueryDataVersion: self.data_version,
            BrokerHeartbeat: self.heartbeat,
            GetBrokerMemberGroup: self.members,
            GetBrokerClusterInfo: self.clusters,
            RegisterTopicInNamesrv: self.register_topic,
        }

    def register(self, peer: Peer, request: RemotingCommand) -> RemotingCommand:
        """REGISTER_BROKER."""
        header = RegisterBroker.from_fields(request.ext_fields)
        if header.body_crc32 and header.body_crc32 != body_crc(request.body):
            raise SystemFailure("crc32 not match", {})
        identity = _identity(header)
        registration = self._known.decode(
            identity.key, request.body, compressed=header.compressed, requester_version=request.version
        )
        is_known = identity.key in self._table.live
        registered = self._table.register(
            identity,
            registration,
            peer,
            self._clock.monotonic(),
            drops_missing_topics=self._settings.config.drop_missing_topics,
        )
        if not is_known:
            _logger.info("broker registered name=%s id=%d address=%s", *_named(identity))
        if registered.min_change is not None:
            self._tell_brokers([registered.min_change])
        answer = RegisterBrokerAnswer(ha_server_addr=registered.ha_address, master_addr=registered.master_address)
        return _success(request, answer, self._order_conf())

    def _order_conf(self) -> bytes:
        values = self._kv.namespace(ORDER_TOPICS) if self._settings.config.return_order_conf else None
        return b"" if values is None else KV_TABLE.encode(KvTable(values))

    def unregister(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """UNREGISTER_BROKER."""
        header = UnregisterBroker.from_fields(request.ext_fields)
        identity = BrokerIdentity(header.cluster_name, header.broker_name, header.broker_id, header.broker_addr)
        self._tell_brokers(self._table.unregister([identity]))
        _logger.info("broker unregistered name=%s id=%d address=%s", *_named(identity))
        return _success(request)

    def data_version(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """QUERY_DATA_VERSION."""
        header = QueryDataVersion.from_fields(request.ext_fields)
        theirs = DATA_VERSION.decode(request.body)
        key = BrokerKey(header.cluster_name, header.broker_addr)
        ours = self._table.stored_version(key)
        self._table.touch(key, self._clock.monotonic())
        body = b"" if ours is None else DATA_VERSION.encode(ours)
        return _success(request, QueryDataVersionAnswer(changed=ours != theirs), body)

    def heartbeat(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """BROKER_HEARTBEAT."""
        header = BrokerHeartbeat.from_fields(request.ext_fields)
        self._table.touch(BrokerKey(header.cluster_name, header.broker_addr), self._clock.monotonic())
        return _success(request)

    def members(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_BROKER_MEMBER_GROUP."""
        header = GetBrokerMemberGroup.from_fields(request.ext_fields)
        data = self._table.brokers.get(header.broker_name)
        members = BrokerMembers(header.cluster_name, header.broker_name, {} if data is None else data.addresses)
        body = BROKER_MEMBER_GROUP.encode(BrokerMemberGroup(members))
        return request.answer(ResponseCode.SUCCESS, _UNSET_REMARK, body=body)

    def clusters(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_BROKER_CLUSTER_INFO."""
        clusters = {name: sorted(members) for name, members in self._table.clusters.items()}
        return _success(request, body=CLUSTER_INFO.encode(ClusterInfo(self._table.brokers, clusters)))

    def register_topic(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """REGISTER_TOPIC_IN_NAMESRV."""
        header = RegisterTopicInNamesrv.from_fields(request.ext_fields)
        self._table.register_topic(header.topic, TOPIC_ROUTE.decode(request.body).queues)
        return _success(request)


class TopicProcessor(Processor):
    """Lists of topics, and what administrators do to topics."""

    def __init__(self, table: RouteTable, settings: LiveSettings) -> None:
        self._table = table
        self._settings = settings

    def handlers(self) -> Mapping[type[Request[Any]], Handler]:
        return {
            GetAllTopicList: self.all_topics,
            GetTopicsByCluster: self.of_cluster,
            GetSystemTopicList: self.system_topics,
            GetUnitTopicList: self._unit_list(self._table.unit_topics),
            GetHasUnitSubTopicList: self._unit_list(self._table.unit_subscription_topics),
            GetHasUnitSubUnunitTopicList: self._unit_list(self._table.unit_subscription_topics_without_unit),
            DeleteTopicInNamesrv: self.delete,
            WipeWritePerm: self.wipe_write_permission,
            AddWritePerm: self.add_write_permission,
        }

    def all_topics(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_TOPIC_LIST_FROM_NAMESERVER."""
        if not self._settings.config.all_topic_list:
            raise SystemFailure("disable")
        return _topics(request, self._table.topics)

    def of_cluster(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_TOPICS_BY_CLUSTER."""
        self._check_lists()
        return _topics(
            request, self._table.topics_of_cluster(GetTopicsByCluster.from_fields(request.ext_fields).cluster)
        )

    def system_topics(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_SYSTEM_TOPIC_LIST_FROM_NS: every cluster and broker has a topic of its name."""
        names = [*self._table.clusters, *self._table.brokers]
        return _topics(request, dict.fromkeys(names), self._table.any_address())

    def _unit_list(self, topics: Callable[[], list[str]]) -> Handler:
        def answer(_: Peer, request: RemotingCommand) -> RemotingCommand:
            self._check_lists()
            return _topics(request, topics())

        return answer

    def _check_lists(self) -> None:
        if not self._settings.config.topic_list:
            raise SystemFailure("disable")

    def delete(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """DELETE_TOPIC_IN_NAMESRV."""
        header = DeleteTopicInNamesrv.from_fields(request.ext_fields)
        self._table.delete_topic(header.topic, header.cluster_name or None)
        _logger.info("topic deleted topic=%s cluster=%s", header.topic, header.cluster_name)
        return _success(request)

    def wipe_write_permission(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """WIPE_WRITE_PERM_OF_BROKER."""
        count = self._table.wipe_write_permission(WipeWritePerm.from_fields(request.ext_fields).broker_name)
        return _success(request, WipeWritePermAnswer(wipe_topic_count=count))

    def add_write_permission(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """ADD_WRITE_PERM_OF_BROKER."""
        count = self._table.add_write_permission(AddWritePerm.from_fields(request.ext_fields).broker_name)
        return _success(request, AddWritePermAnswer(add_topic_count=count))


class KvProcessor(Processor):
    """Values by namespace and key, and the settings of the name server itself."""

    def __init__(self, kv: KvConfig, settings: LiveSettings) -> None:
        self._kv = kv
        self._settings = settings

    def handlers(self) -> Mapping[type[Request[Any]], Handler]:
        return {
            PutKvConfig: self.put,
            GetKvConfig: self.get,
            DeleteKvConfig: self.delete,
            GetKvListByNamespace: self.namespace,
            UpdateNamesrvConfig: self.update_settings,
            GetNamesrvConfig: self.show_settings,
        }

    def put(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """PUT_KV_CONFIG."""
        header = PutKvConfig.from_fields(request.ext_fields)
        if header.namespace is None or header.key is None:
            raise SystemFailure("namespace or key is null")
        self._kv.put(header.namespace, header.key, header.value)
        return _success(request)

    def get(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_KV_CONFIG."""
        header = GetKvConfig.from_fields(request.ext_fields)
        return _success(request, GetKvConfigAnswer(value=self._kv.required(header.namespace, header.key)))

    def delete(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """DELETE_KV_CONFIG."""
        header = DeleteKvConfig.from_fields(request.ext_fields)
        self._kv.delete(header.namespace, header.key)
        return _success(request)

    def namespace(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_KVLIST_BY_NAMESPACE."""
        values = self._kv.required_namespace(GetKvListByNamespace.from_fields(request.ext_fields).namespace)
        return _success(request, body=KV_TABLE.encode(KvTable(values)))

    def update_settings(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """UPDATE_NAMESRV_CONFIG."""
        if request.body:
            self._settings.update(_text(request.body))
        return _success(request)

    def show_settings(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_NAMESRV_CONFIG."""
        return _success(request, body=self._settings.text().encode())


def _identity(header: RegisterBroker) -> BrokerIdentity:
    millis = header.heartbeat_timeout_millis
    return BrokerIdentity(
        cluster=header.cluster_name,
        broker_name=header.broker_name,
        broker_id=header.broker_id,
        address=header.broker_addr,
        ha_address=header.ha_server_addr,
        zone_name=header.zone_name,
        accepts_acting_master=header.enable_acting_master,
        timeout_seconds=DEFAULT_TIMEOUT_SECONDS if millis is None else millis / 1000,
    )


def _named(broker: BrokerIdentity) -> tuple[str, int, str]:
    return broker.broker_name, broker.broker_id, broker.address


def _success(request: RemotingCommand, header: Header | None = None, body: Body = b"") -> RemotingCommand:
    return request.answer(ResponseCode.SUCCESS, None, None if header is None else header.ext_fields(), body)


def _topics(request: RemotingCommand, topics: Iterable[str], address: str | None = None) -> RemotingCommand:
    return _success(request, body=TOPIC_LIST.encode(TopicList(tuple(topics), address)))


def _text(body: Body) -> str:
    try:
        return bytes(body).decode()
    except UnicodeDecodeError as error:
        raise SystemFailure(f"string2Properties error: {error}") from error
