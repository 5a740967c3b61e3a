"""Captured conversations with real name servers, played to ours; the tables before it are read off the answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from skyrocket.fastjson import loads
from skyrocket.model.data_version import DataVersion
from skyrocket.namesrv.kv_config import ORDER_TOPICS
from skyrocket.namesrv.name_server import NameServer
from skyrocket.namesrv.route_table import BrokerKey, LiveBroker
from skyrocket.protocol.bodies.registration import decode_registration
from skyrocket.protocol.bodies.route import BrokerData, ClusterInfo, QueueData, TopicRoute
from skyrocket.protocol.bodies.topics import TopicList
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import ONEWAY_FLAG
from tests.golden_wire import CapturedFrame, capture, capture_names


@dataclass(frozen=True)
class Exchange:
    """A request to a name server and the answer of the real one; None for a oneway request."""

    request: CapturedFrame
    answer: CapturedFrame | None

    @property
    def code(self) -> int:
        return int(self.request.header["code"])

    @property
    def fields(self) -> Mapping[str, str]:
        return self.request.header.get("extFields") or {}

    @property
    def answer_code(self) -> int:
        return int(self.answer.header["code"]) if self.answer is not None else 0

    @property
    def answer_body(self) -> bytes:
        return self.answer.body if self.answer is not None else b""


def exchanges(name: str) -> list[Exchange]:
    """In the order of the answers: in between the real server did what it was asked."""
    asked: dict[tuple[int, int], CapturedFrame] = {}
    found = []
    for frame in capture(name):
        place = (frame.connection, frame.header.get("opaque", 0))
        if frame.peer.endswith("->namesrv") and not frame.is_response:
            if frame.header.get("flag", 0) & ONEWAY_FLAG:
                found.append(Exchange(frame, None))
            else:
                asked[place] = frame
        elif frame.peer.startswith("namesrv->") and frame.is_response and place in asked:
            found.append(Exchange(asked.pop(place), frame))
    return found


def conversations() -> Iterator[str]:
    """Captures that have some."""
    return (name for name in capture_names() if exchanges(name))


def prepare(server: NameServer, conversation: list[Exchange]) -> None:
    """Bring the tables into the state that the first answers show."""
    _Preparation(server).run(conversation)


class _Preparation:
    def __init__(self, server: NameServer) -> None:
        self.server = server
        self.table = server.table
        self.asked_topics: set[str] = set()
        self.registered: set[str] = set()

    def run(self, conversation: list[Exchange]) -> None:
        for exchange in conversation:
            code = exchange.code
            if code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
                self.route(exchange)
            elif code == RequestCode.GET_BROKER_CLUSTER_INFO:
                for data in ClusterInfo.decode(exchange.answer_body).brokers.values():
                    self.broker(data)
            elif code in (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, RequestCode.GET_TOPICS_BY_CLUSTER):
                for topic in TopicList.decode(exchange.answer_body).topics:
                    if topic not in self.asked_topics:
                        self.table.topics.setdefault(topic, {})["broker-a"] = QueueData("broker-a", 1, 1, 6)
            elif code == RequestCode.GET_BROKER_MEMBER_GROUP:
                self.broker(BrokerData("broker-a", "DefaultCluster", {0: "127.0.0.1:30911"}))
            elif code == RequestCode.REGISTER_BROKER:
                self.registration(exchange)

    def route(self, exchange: Exchange) -> None:
        topic = exchange.fields.get("topic", "null")
        if topic in self.asked_topics:
            return
        self.asked_topics.add(topic)
        self.table.topics.pop(topic, None)
        if exchange.answer_code == 0:
            route = TopicRoute.decode(exchange.answer_body)
            self.table.topics[topic] = {queues.broker_name: queues for queues in route.queues}
            for data in route.brokers:
                self.broker(data)

    def broker(self, data: BrokerData) -> None:
        if data.broker_name not in self.table.brokers:
            self.table.brokers[data.broker_name] = data
            self.table.clusters.setdefault(data.cluster or "", set()).add(data.broker_name)

    def registration(self, exchange: Exchange) -> None:
        if exchange.fields.get("brokerAddr", "") in self.registered:
            return
        self.registered.add(exchange.fields.get("brokerAddr", ""))
        if exchange.answer_code != 0:
            return
        fields, version = exchange.fields, exchange.request.header.get("version", 0)
        address, broker_id = fields["brokerAddr"], int(fields["brokerId"])
        topics = decode_registration(exchange.request.body, compressed=False, requester_version=version).table.topics
        if len(topics) == 1:
            self.broker(BrokerData(fields["brokerName"], fields["clusterName"], {broker_id: address}))
        key = BrokerKey(fields["clusterName"], address)
        if broker_id == 0:
            self.table.live[key] = LiveBroker(0.0, 1e18, DataVersion(), object(), fields["haServerAddr"])
        if exchange.answer_body and self.server.kv.namespace(ORDER_TOPICS) is None:
            self.server.kv.put(ORDER_TOPICS, "x", "y")
            self.server.kv.delete(ORDER_TOPICS, "x")


def comparable_body(code: int, body: bytes, *, is_4_9: bool) -> Any:
    """What must be the same; sets where RocketMQ has the order of a hash table, names where values differ."""
    if not body:
        return None
    if code == RequestCode.GET_NAMESRV_CONFIG:
        return {"listenPort", "kvConfigPath"} <= {line.partition("=")[0] for line in body.decode().splitlines()}
    if code == RequestCode.GET_ROUTEINFO_BY_TOPIC and not is_4_9:
        return body  # to the byte, in both forms
    return _sorted(loads(body), is_4_9)


def _sorted(value: Any, is_4_9: bool) -> Any:
    if isinstance(value, dict):
        names = [name for name in value if not (is_4_9 and name == "enableActingMaster")]
        return {str(name): _sorted(value[name], is_4_9) for name in names}
    if isinstance(value, list):
        return sorted((_sorted(part, is_4_9) for part in value), key=str)
    return value
