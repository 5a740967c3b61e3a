"""Captured conversations with real brokers, played to ours; the tables before them are read off the answers.

    for exchange, answer in await replay(broker, exchanges(name, codes)):
        difference = differences(exchange, answer)

Whoever adds requests to the replay adds to `_Preparation` what the answers to them show, and to `comparable_body` what
of their bodies must be the same.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from skyrocket.broker.broker import Broker
from skyrocket.config.sources import parse_properties
from skyrocket.fastjson import loads
from skyrocket.format.config_files import ConsumerOffsets, SubscriptionGroups, Topics
from skyrocket.protocol.bodies.groups import SUBSCRIPTION_GROUP, GroupConfigList, GroupTable
from skyrocket.protocol.bodies.topics import TOPIC_CONFIG, TopicConfigList, TopicTable
from skyrocket.protocol.codes import RequestCode, Version
from skyrocket.protocol.command import ONEWAY_FLAG, RemotingCommand
from tests.cluster.namesrv.name_server_fixture import RawConnection
from tests.cluster.namesrv.name_server_replay import Exchange
from tests.golden_wire import CapturedFrame, capture

_TOPICS_OF_SETTINGS: Final = ("rmq_sys_", "RMQ_SYS_")  # which of them there are depends on settings


def exchanges(name: str, codes: Collection[int]) -> list[Exchange]:
    """Requests of these codes to a broker with the answers of the real one, in the order of the answers."""
    asked: dict[tuple[int, int], CapturedFrame] = {}
    found = []
    for frame in capture(name):
        place = (frame.connection, frame.header.get("opaque", 0))
        if frame.peer.endswith("->broker") and not frame.is_response:
            if frame.header["code"] not in codes:
                continue
            if frame.header.get("flag", 0) & ONEWAY_FLAG:
                found.append(Exchange(frame, None))
            else:
                asked[place] = frame
        elif frame.peer.startswith("broker->") and frame.is_response and place in asked:
            found.append(Exchange(asked.pop(place), frame))
    return found


async def replay(broker: Broker, conversation: list[Exchange]) -> list[tuple[Exchange, RemotingCommand]]:
    """Prepare the broker and play the conversation to it; what it answers."""
    _Preparation(broker).run(conversation)
    return await play(broker, conversation)


async def play(broker: Broker, conversation: list[Exchange]) -> list[tuple[Exchange, RemotingCommand]]:
    """Ask the broker the same, byte for byte, over as many connections; what it answers."""
    connections: dict[int, RawConnection] = {}
    answers = []
    try:
        for exchange in conversation:
            number = exchange.request.connection
            if number not in connections:
                connections[number] = await RawConnection.to(broker.identity.address)
            if exchange.answer is None:
                connections[number].send(exchange.request.raw)
            else:
                answers.append((exchange, await connections[number].ask(exchange.request.raw)))
    finally:
        for connection in connections.values():
            connection.close()
    return answers


class _Preparation:
    """Topics and groups that the real broker had: those that it showed before the conversation itself made them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._topics = dict(broker.tables.topics.topics)
        self._groups = dict(broker.tables.groups.groups)
        self._made: set[str] = set()  # by the conversation, so not there before it
        self._steps: Mapping[int, Callable[[Exchange], None]] = {
            RequestCode.UPDATE_AND_CREATE_TOPIC: self._makes_topic,
            RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: self._makes_topics,
            RequestCode.GET_TOPIC_CONFIG: self._shows_topic,
            RequestCode.GET_ALL_TOPIC_CONFIG: self._shows_topics,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self._makes_group,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: self._makes_groups,
            RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: self._shows_group,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self._shows_groups,
        }

    def run(self, conversation: list[Exchange]) -> None:
        for exchange in conversation:
            step = self._steps.get(exchange.code)
            if step is not None and exchange.answer_code == 0:
                step(exchange)
        broker = self._broker
        broker.tables.topics.replace(Topics(broker.tables.topics.data_version, self._topics))
        broker.tables.groups.replace(SubscriptionGroups(broker.tables.groups.data_version, self._groups))
        broker.tables.offsets.replace(ConsumerOffsets())

    def _makes_topic(self, exchange: Exchange) -> None:
        self._made.add(exchange.fields["topic"])

    def _makes_topics(self, exchange: Exchange) -> None:
        self._made.update(topic.name for topic in TopicConfigList.decode(exchange.request.body).topics)

    def _shows_topic(self, exchange: Exchange) -> None:
        topic = TOPIC_CONFIG.decode(exchange.answer_body)
        if topic.name not in self._made:
            self._topics.setdefault(topic.name, topic)

    def _shows_topics(self, exchange: Exchange) -> None:
        self._topics = {**self._topics, **TopicTable.decode(exchange.answer_body).topics}

    def _makes_group(self, exchange: Exchange) -> None:
        if exchange.request.body:
            self._made.add(SUBSCRIPTION_GROUP.decode(exchange.request.body).name)

    def _makes_groups(self, exchange: Exchange) -> None:
        self._made.update(group.name for group in GroupConfigList.decode(exchange.request.body).groups)

    def _shows_group(self, exchange: Exchange) -> None:
        group = SUBSCRIPTION_GROUP.decode(exchange.answer_body)
        if group.name not in self._made:
            self._groups.setdefault(group.name, group)

    def _shows_groups(self, exchange: Exchange) -> None:
        self._groups = {**self._groups, **GroupTable.decode(exchange.answer_body).groups}


# ── comparison ───────────────────────────────────────────────────────────────────────────────────────────────────────


def differences(exchange: Exchange, answer: RemotingCommand) -> list[str]:
    """What of our answer is not as the real broker's; nothing, if all is well."""
    assert exchange.answer is not None
    expected = exchange.answer.header
    pairs: list[tuple[str, Any, Any]] = [
        ("code", answer.code, expected["code"]),
        ("opaque", answer.opaque, expected["opaque"]),
        ("fields", _names(answer.ext_fields), _names(expected.get("extFields"))),
    ]
    if not _is_exception(expected):
        pairs.append(("remark", _remark(answer.remark), _remark(expected.get("remark"))))
    if answer.code == expected["code"]:
        theirs = comparable_body(exchange.code, exchange.answer.body)
        pairs.append(("body", comparable_body(exchange.code, bytes(answer.body)), theirs))
    return [f"{exchange.request}: {what} is {ours!r}, not {theirs!r}" for what, ours, theirs in pairs if ours != theirs]


def is_by_4_9(exchange: Exchange) -> bool:
    """Whether the answer is that of a 4.9.7 broker."""
    return exchange.answer is not None and exchange.answer.header["version"] == Version.V4_9_7


def _is_exception(header: Mapping[str, Any]) -> bool:
    """Remarks that end with the place in RocketMQ's source."""
    return re.match(r"(java|org\.apache)\.", str(header.get("remark"))) is not None


def _names(fields: Mapping[str, str] | None) -> list[str] | None:
    return None if fields is None else list(fields)


def _remark(remark: str | None) -> str | None:
    return None if remark is None else re.sub(r"See https?://\S+", "See FAQ", remark)


def comparable_body(code: int, body: bytes) -> Any:
    """What of a body must be the same on every broker in the same state."""
    if not body:
        return None
    if code == RequestCode.GET_BROKER_CONFIG:
        return _settings(body)
    value: Any = loads(body)
    if code == RequestCode.GET_BROKER_HA_STATUS:
        value["masterCommitLogMaxOffset"] = 0
    elif code in (RequestCode.GET_ALL_CONSUMER_OFFSET, RequestCode.GET_ALL_DELAY_OFFSET):
        return sorted(value)
    elif code == RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER:
        value["topicList"] = sorted(name for name in value["topicList"] if not name.startswith(_TOPICS_OF_SETTINGS))
    return _masked(value)


def _settings(body: bytes) -> dict[str, str]:
    """Values of settings that both have and that are not of one machine: the defaults must be RocketMQ's."""
    pairs = parse_properties(body.decode())
    chosen = (
        "fileReservedTime",
        "deleteWhen",
        "brokerPermission",
        "flushDiskType",
        "autoCreateTopicEnable",
        "brokerId",
    )
    return {key: pairs[key] for key in chosen}


def _masked(value: Any) -> Any:
    """Data versions differ in their numbers only; lists from hash tables have no order."""
    if isinstance(value, dict):
        if {"counter", "timestamp"} <= value.keys():
            return sorted(value)
        return {str(name): _masked(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_masked(part) for part in value]
    return value
