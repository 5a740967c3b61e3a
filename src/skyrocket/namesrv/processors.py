"""A method per request, whose class says what is asked. What is refused raises; the router answers with its code."""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from skyrocket.clock import Clock
from skyrocket.config.sections import NameServerConfig
from skyrocket.model.data_version import DataVersion
from skyrocket.namesrv.known_registrations import KnownRegistrations
from skyrocket.namesrv.kv_config import ORDER_TOPICS, KvConfig
from skyrocket.namesrv.route_table import (
    DEFAULT_TIMEOUT_SECONDS,
    BrokerIdentity,
    BrokerKey,
    MinBrokerChange,
    RouteTable,
)
from skyrocket.namesrv.route_view import only_zone, route_of
from skyrocket.protocol.bodies.registration import body_crc
from skyrocket.protocol.bodies.route import (
    BrokerMemberGroup,
    BrokerMembers,
    ClusterInfo,
    TopicRoute,
    encode_route,
    wants_strict_route,
)
from skyrocket.protocol.bodies.settings_text import decode_settings
from skyrocket.protocol.bodies.tables import KvTable
from skyrocket.protocol.bodies.topics import TopicList
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import FAQ, SystemFailure, TopicNotExist
from skyrocket.protocol.requests.broker_registration import (
    BrokerHeartbeat,
    GetBrokerMemberGroup,
    QueryDataVersion,
    QueryDataVersionAnswer,
    RegisterBroker,
    RegisterBrokerAnswer,
    UnregisterBroker,
)
from skyrocket.protocol.requests.kv_config import (
    DeleteKvConfig,
    GetKvConfig,
    GetKvConfigAnswer,
    GetKvListByNamespace,
    GetNamesrvConfig,
    PutKvConfig,
    UpdateNamesrvConfig,
)
from skyrocket.protocol.requests.name_server import (
    AddWritePerm,
    AddWritePermAnswer,
    DeleteTopicInNamesrv,
    GetAllTopicList,
    GetBrokerClusterInfo,
    GetHasUnitSubTopicList,
    GetHasUnitSubUnunitTopicList,
    GetSystemTopicList,
    GetTopicsByCluster,
    GetUnitTopicList,
    RegisterTopicInNamesrv,
    WipeWritePerm,
    WipeWritePermAnswer,
)
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.remoting.live_settings import LiveSettings
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import UNSET_REMARK, Answered, Handlers, serve

_logger = logging.getLogger(__name__)

_MAX_KEPT_ROUTES: Final = 10_000

TellBrokers = Callable[[Iterable[MinBrokerChange]], None]


class RouteProcessor:
    """Where a topic's queues are: the one question of clients. Encoded answers are kept until a table changes."""

    def __init__(self, table: RouteTable, kv: KvConfig, settings: LiveSettings[NameServerConfig], clock: Clock) -> None:
        self._table = table
        self._kv = kv
        self._settings = settings
        self._clock = clock
        self._started_at = clock.monotonic()
        self._kept: dict[tuple[str, bool], bytes] = {}
        self._kept_of: tuple[int, int, int] = (0, 0, 0)

    def handlers(self) -> Handlers:
        return (serve(GetRouteInfoByTopic, self.route),)

    def route(self, peer: Peer, header: GetRouteInfoByTopic, _: Body) -> bytes:
        """The brokers and queues of a topic; raises TopicNotExist."""
        self._check_ready()
        topic = header.topic if header.topic is not None else "null"
        strict = wants_strict_route(peer.version, header.accept_standard_json_only)
        body = self._body(topic, strict) if header.zone is None else self._zone_body(topic, header.zone)
        if body is None:
            raise TopicNotExist(f"No topic route info in name server for the topic: {topic}{FAQ}")
        return body

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

    def _route(self, topic: str) -> TopicRoute | None:
        config = self._settings.config
        order_conf = self._kv.get(ORDER_TOPICS, topic) if config.order_messages else None
        return route_of(self._table, topic, with_acting_masters=config.support_acting_master, order_conf=order_conf)


class BrokerProcessor:
    """Brokers come, show that they live, and go."""

    def __init__(
        self,
        table: RouteTable,
        kv: KvConfig,
        settings: LiveSettings[NameServerConfig],
        clock: Clock,
        tell_brokers: TellBrokers,
    ) -> None:
        self._table = table
        self._kv = kv
        self._settings = settings
        self._clock = clock
        self._tell_brokers = tell_brokers
        self._known = KnownRegistrations(table.live)

    def handlers(self) -> Handlers:
        return (
            serve(RegisterBroker, self.register),
            serve(UnregisterBroker, self.unregister),
            serve(QueryDataVersion, self.data_version),
            serve(BrokerHeartbeat, self.heartbeat),
            serve(GetBrokerMemberGroup, self.members),
            serve(GetBrokerClusterInfo, self.clusters),
            serve(RegisterTopicInNamesrv, self.register_topic),
        )

    async def register(self, peer: Peer, header: RegisterBroker, body: Body) -> Answered:
        """Take what a broker has; the answer tells a slave who its master is."""
        if header.body_crc32 and header.body_crc32 != body_crc(body):
            raise SystemFailure("crc32 not match", {})
        identity = _identity(header)
        registration = await self._known.decode(
            identity.key,
            body,
            compressed=header.compressed,
            requester_version=peer.version,
            max_topics=self._settings.config.max_registration_topics,
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
        return Answered(answer, self._order_conf())

    def _order_conf(self) -> KvTable | None:
        values = self._kv.namespace(ORDER_TOPICS) if self._settings.config.return_order_conf else None
        return None if values is None else KvTable(values)

    def unregister(self, _: Peer, header: UnregisterBroker, __: Body) -> None:
        identity = BrokerIdentity(header.cluster_name, header.broker_name, header.broker_id, header.broker_addr)
        self._tell_brokers(self._table.unregister([identity]))
        _logger.info("broker unregistered name=%s id=%d address=%s", *_named(identity))

    def data_version(self, _: Peer, header: QueryDataVersion, theirs: DataVersion) -> Answered:
        """Whether a broker has to register again; that it asks shows that it lives."""
        key = BrokerKey(header.cluster_name, header.broker_addr)
        ours = self._table.stored_version(key)
        self._table.touch(key, self._clock.monotonic())
        return Answered(QueryDataVersionAnswer(changed=ours != theirs), ours)

    def heartbeat(self, _: Peer, header: BrokerHeartbeat, __: Body) -> None:
        self._table.touch(BrokerKey(header.cluster_name, header.broker_addr), self._clock.monotonic())

    def members(self, _: Peer, header: GetBrokerMemberGroup, __: Body) -> Answered:
        data = self._table.brokers.get(header.broker_name)
        members = BrokerMembers(header.cluster_name, header.broker_name, {} if data is None else data.addresses)
        return Answered(body=BrokerMemberGroup(members), remark=UNSET_REMARK)

    def clusters(self, _: Peer, __: GetBrokerClusterInfo, ___: Body) -> ClusterInfo:
        clusters = {name: sorted(members) for name, members in self._table.clusters.items()}
        return ClusterInfo(self._table.brokers, clusters)

    def register_topic(self, _: Peer, header: RegisterTopicInNamesrv, route: TopicRoute) -> None:
        """Take the queues of one topic before its brokers register."""
        self._table.register_topic(header.topic, route.queues)


class TopicProcessor:
    """Lists of topics, and what administrators do to topics."""

    def __init__(self, table: RouteTable, settings: LiveSettings[NameServerConfig]) -> None:
        self._table = table
        self._settings = settings

    def handlers(self) -> Handlers:
        return (
            serve(GetAllTopicList, self.all_topics),
            serve(GetTopicsByCluster, self.of_cluster),
            serve(GetSystemTopicList, self.system_topics),
            serve(GetUnitTopicList, self.unit_topics),
            serve(GetHasUnitSubTopicList, self.unit_subscription_topics),
            serve(GetHasUnitSubUnunitTopicList, self.other_unit_subscription_topics),
            serve(DeleteTopicInNamesrv, self.delete),
            serve(WipeWritePerm, self.wipe_write_permission),
            serve(AddWritePerm, self.add_write_permission),
        )

    def all_topics(self, _: Peer, __: GetAllTopicList, ___: Body) -> TopicList:
        """All topics; raises SystemFailure where the list is switched off."""
        if not self._settings.config.all_topic_list:
            raise SystemFailure("disable")
        return TopicList(tuple(self._table.topics))

    def of_cluster(self, _: Peer, header: GetTopicsByCluster, __: Body) -> TopicList:
        return self._listed(self._table.topics_of_cluster(header.cluster))

    def system_topics(self, _: Peer, __: GetSystemTopicList, ___: Body) -> TopicList:
        """The topics that every cluster and every broker has under its name."""
        names = [*self._table.clusters, *self._table.brokers]
        return TopicList(tuple(dict.fromkeys(names)), self._table.any_address())

    def unit_topics(self, _: Peer, __: GetUnitTopicList, ___: Body) -> TopicList:
        return self._listed(self._table.unit_topics())

    def unit_subscription_topics(self, _: Peer, __: GetHasUnitSubTopicList, ___: Body) -> TopicList:
        return self._listed(self._table.unit_subscription_topics())

    def other_unit_subscription_topics(self, _: Peer, __: GetHasUnitSubUnunitTopicList, ___: Body) -> TopicList:
        return self._listed(self._table.unit_subscription_topics_without_unit())

    def _listed(self, topics: Iterable[str]) -> TopicList:
        if not self._settings.config.topic_list:
            raise SystemFailure("disable")
        return TopicList(tuple(topics))

    def delete(self, _: Peer, header: DeleteTopicInNamesrv, __: Body) -> None:
        self._table.delete_topic(header.topic, header.cluster_name or None)
        _logger.info("topic deleted topic=%s cluster=%s", header.topic, header.cluster_name)

    def wipe_write_permission(self, _: Peer, header: WipeWritePerm, __: Body) -> WipeWritePermAnswer:
        count = self._table.wipe_write_permission(header.broker_name)
        return WipeWritePermAnswer(wipe_topic_count=count)

    def add_write_permission(self, _: Peer, header: AddWritePerm, __: Body) -> AddWritePermAnswer:
        count = self._table.add_write_permission(header.broker_name)
        return AddWritePermAnswer(add_topic_count=count)


class KvProcessor:
    """Values by namespace and key, and the settings of the name server itself."""

    def __init__(self, kv: KvConfig, settings: LiveSettings[NameServerConfig]) -> None:
        self._kv = kv
        self._settings = settings

    def handlers(self) -> Handlers:
        return (
            serve(PutKvConfig, self.put),
            serve(GetKvConfig, self.get),
            serve(DeleteKvConfig, self.delete),
            serve(GetKvListByNamespace, self.namespace),
            serve(UpdateNamesrvConfig, self.update_settings),
            serve(GetNamesrvConfig, self.show_settings),
        )

    def put(self, _: Peer, header: PutKvConfig, __: Body) -> None:
        if header.namespace is None or header.key is None:
            raise SystemFailure("namespace or key is null")
        self._kv.put(header.namespace, header.key, header.value)

    def get(self, _: Peer, header: GetKvConfig, __: Body) -> GetKvConfigAnswer:
        return GetKvConfigAnswer(value=self._kv.required(header.namespace, header.key))

    def delete(self, _: Peer, header: DeleteKvConfig, __: Body) -> None:
        self._kv.delete(header.namespace, header.key)

    def namespace(self, _: Peer, header: GetKvListByNamespace, __: Body) -> KvTable:
        return KvTable(self._kv.required_namespace(header.namespace))

    def update_settings(self, _: Peer, __: UpdateNamesrvConfig, body: Body) -> None:
        """Change settings; without a body none."""
        if body:
            self._settings.update(decode_settings(body))

    def show_settings(self, _: Peer, __: GetNamesrvConfig, ___: Body) -> bytes:
        return self._settings.text().encode()


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
