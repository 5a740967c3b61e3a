"""What a real broker had before a captured conversation, as far as the conversation shows it.

Topics are those that the name server knew when it was first asked, or that were served without having been made;
messages are those that pulls and queries return and that are older than the conversation, each at its place in its
queue and in the log (what else was there is filled with others); offsets are those that clients found; members of
groups are those that were listed without having announced themselves.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from skyrocket.broker.broker import Broker
from skyrocket.errors import CorruptRecord
from skyrocket.fastjson import loads
from skyrocket.format.config_files import SubscriptionGroups, Topics
from skyrocket.format.record import SMALLEST_RECORD, decode_record, pack_host, read_head
from skyrocket.model.message import StoredMessage
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.groups import SUBSCRIPTION_GROUP, GroupList, GroupTable
from skyrocket.protocol.bodies.heartbeat import ConsumerData, Heartbeat, ProducerData
from skyrocket.protocol.bodies.route import TopicRoute
from skyrocket.protocol.bodies.statistics import ConsumeStats
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.bodies.topics import TOPIC_CONFIG, TopicTable
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.errors import MalformedBody
from skyrocket.store.commit_log import PutMessage
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.conversation import Deed, Step, routes_shown

SENDS: Final = frozenset({10, 310, 320, 324, 325})
REPLIES: Final = frozenset({324, 325})  # answered when the client that waits for them has answered
RECORD_ANSWERS: Final = frozenset({11, 361, 12, 33})
FILLER: Final = "Filler"
_SCHEDULE: Final = "SCHEDULE_TOPIC_XXXX"
_FILLER_FRAME: Final = SMALLEST_RECORD + len(FILLER)  # a filler without body
_TIMERS: Final = frozenset({"TIMER_DELAY_MS", "TIMER_DELAY_SEC", "TIMER_DELIVER_MS"})
_TIMER: Final = "rmq_sys_wheel_timer"  # it is not filled: whatever is in it is delivered
_HALF: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
_TO_FILLER: Final = b"REAL_TOPIC\x01Filler\x02REAL_QID\x010\x02"  # where a filler is delivered that is scheduled
_QUEUES: Final = 4
_MADE_UP_MS: Final = 1_700_000_000_000  # the birth of messages made by hand
_COMMITS_OFFSET: Final = 0x1  # of a pull's sysFlag

QueueKey = tuple[str, int]


@dataclass(frozen=True)
class Member:
    """A client that was there before."""

    client_id: str
    connection: int
    consumer: ConsumerData | None = None
    producer: ProducerData | None = None


@dataclass
class Beginning:
    """The state of a broker when a conversation began."""

    began_ms: int
    topics: dict[str, TopicConfig] = field(default_factory=dict)
    groups: dict[str, SubscriptionGroup] = field(default_factory=dict)
    records: dict[int, bytes] = field(default_factory=dict)  # by physical offset
    queue_ends: dict[QueueKey, int] = field(default_factory=dict)
    offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)  # by group, topic and queue
    members: list[Member] = field(default_factory=list)


def beginning_of(name: str, steps: list[Step]) -> Beginning:
    """Read it off the whole conversation."""
    found = Beginning(_began_ms(steps))
    _read_messages(found, steps)
    _read_topics(found, name, steps)
    _read_groups(found, steps)
    _read_offsets(found, steps)  # may add to topics and queues
    _read_members(found, steps)
    return found


def answers(steps: list[Step], *codes: int) -> Iterator[Step]:
    """Answers to requests of these codes."""
    return (step for step in steps if step.deed is Deed.IS_ANSWERED and step.request is not None and step.code in codes)


def _json(body: bytes) -> Any:
    return loads(body)


def records_of(body: bytes) -> Iterator[tuple[bytes, StoredMessage]]:
    """The records of a pull's body, raw and decoded; nothing of a body that has others."""
    position = 0
    while position < len(body):
        try:
            message = decode_record(body, position)
        except CorruptRecord:  # RocketMQ 4.9 shows what is at an offset, whatever it is
            return
        yield body[position : position + message.record_size], message
        position += message.record_size


# ── time and messages ────────────────────────────────────────────────────────────────────────────────────────────────


def born_ms(step: Step) -> int:
    """When the client made the message that it sends."""
    return _number(step.fields.get("g") or step.fields.get("bornTimestamp"))


def queue_sent_to(step: Step) -> QueueKey:
    """The queue in which a sent message ends up."""
    fields = step.fields
    properties = fields.get("i") or fields.get("properties") or ""
    pairs = dict(pair.split("\x01", 1) for pair in properties.split("\x02") if "\x01" in pair)
    if pairs.get("TRAN_MSG") == "true":
        return _HALF, 0
    if not _TIMERS.isdisjoint(pairs):
        return _TIMER, 0
    if _number(pairs.get("DELAY")) > 0:
        return _SCHEDULE, int(pairs["DELAY"]) - 1
    queue_id = step.answer_fields.get("queueId") if step.request is not None else None
    topic = fields.get("b") or fields.get("topic") or ""
    return topic, _number(queue_id or fields.get("e") or fields.get("queueId"))


def _number(text: Any) -> int:
    """A field that should be the text of a number; captures of bad input have others."""
    return int(text) if re.fullmatch(r"-?\d+", str(text)) else 0


def _began_ms(steps: list[Step]) -> int:
    sent = [step for step in steps if step.deed is Deed.ASKS_BROKER and step.code in SENDS]
    sent = [step for step in sent if born_ms(step) not in (0, _MADE_UP_MS)]
    if sent:
        return max(born_ms(step) - int(step.seconds * 1000) for step in sent)  # made before they were sent
    stored = [message.store_timestamp for step in _showing(steps) for _, message in records_of(step.body)]
    return max(stored) + 1000 if stored else FakeClock().now_ms()


def _showing(steps: list[Step]) -> Iterator[Step]:
    return (step for step in answers(steps, *RECORD_ANSWERS) if step.answer_code == 0)


def _read_messages(found: Beginning, steps: list[Step]) -> None:
    for step in _showing(steps):
        for raw, message in records_of(step.body):
            if message.store_timestamp < found.began_ms:
                found.records[message.physical_offset] = raw
    written: Counter[QueueKey] = Counter()
    for step in steps:
        if step.deed is Deed.ASKS_BROKER and step.code in SENDS:
            written[queue_sent_to(step)] += 1
        elif step.deed is Deed.IS_ANSWERED and step.request is not None:
            _read_queue_end(found, step, written)
    for raw in found.records.values():
        message = decode_record(raw)
        key = (message.topic, message.queue_id)
        found.queue_ends[key] = max(found.queue_ends.get(key, 0), message.queue_offset + 1)


def _read_queue_end(found: Beginning, step: Step, written: Counter[QueueKey]) -> None:
    """The first that is said of a queue's end, without what the conversation has put there."""
    fields = step.answer_fields
    if step.code in SENDS and "queueOffset" in fields:
        found.queue_ends.setdefault(queue_sent_to(step), int(fields["queueOffset"]))
        return
    key = (step.fields.get("topic", ""), _number(step.fields.get("queueId")))
    end = None
    if step.code in (11, 361) and step.answer_code in (0, 19, 20, 21) and step.header.get("remark") != "OFFSET_RESET":
        end = int(fields["maxOffset"])
        new = [message for _, message in records_of(step.body) if message.store_timestamp >= found.began_ms]
        if new:
            found.queue_ends.setdefault(key, min(message.queue_offset for message in new))
            return
    elif step.code == RequestCode.GET_MAX_OFFSET and step.answer_code == 0:
        end = int(fields["offset"])
    elif step.code == RequestCode.QUERY_CONSUME_QUEUE and step.body:
        end = int(_json(step.body)["maxQueueIndex"])
    if end is not None:
        found.queue_ends.setdefault(key, max(0, end - written[key]))


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_topics(found: Beginning, name: str, steps: list[Step]) -> None:
    missing: set[str] = set()
    for topic, frame in routes_shown(name):
        if topic in found.topics or topic in missing:
            continue
        if frame.header["code"] != 0:
            missing.add(topic)
            continue
        for queues in TopicRoute.decode(frame.body).queues:
            found.topics[topic] = TopicConfig(topic, queues.read_queues, queues.write_queues, queues.permission)
    for step in steps:
        if step.deed is Deed.ASKS_BROKER:
            missing.update(_topics_made_by(step))
        elif step.deed is Deed.IS_ANSWERED and step.request is not None:
            for config, is_whole in _topics_shown_by(step):
                if config.name not in missing and (is_whole or config.name not in found.topics):
                    found.topics[config.name] = config
    for key, end in found.queue_ends.items():
        if key[0] not in missing and end > 0:
            found.topics.setdefault(key[0], TopicConfig(key[0], _QUEUES, _QUEUES))


def _topics_made_by(step: Step) -> Iterator[str]:
    if step.code == RequestCode.UPDATE_AND_CREATE_TOPIC:
        yield step.fields.get("topic", "")
    elif step.code == RequestCode.UPDATE_AND_CREATE_TOPIC_LIST:
        yield from (config["topicName"] for config in _json(step.body)["topicConfigList"])
    elif step.code == RequestCode.HEART_BEAT:
        yield from ("%RETRY%" + group for group in _beating_groups(step))


def _beating_groups(step: Step) -> list[str]:
    try:
        return [data.group for data in Heartbeat.decode(step.body).consumers]
    except MalformedBody:  # bad input
        return []


_TOPIC_FIELD_CODES: Final = frozenset({11, 361})  # others are served for topics that do not exist


def _topics_shown_by(step: Step) -> Iterator[tuple[TopicConfig, bool]]:
    """Topics, and whether all of their configuration is shown."""
    if step.code == RequestCode.GET_TOPIC_CONFIG and step.answer_code == 0:
        yield TOPIC_CONFIG.decode(step.body), True
    elif step.code == RequestCode.GET_ALL_TOPIC_CONFIG:
        yield from ((config, True) for config in TopicTable.decode(step.body).topics.values())
    elif step.code in _TOPIC_FIELD_CODES and step.answer_code in (0, 19, 20, 21, 22):
        yield TopicConfig(step.fields.get("topic", ""), _QUEUES, _QUEUES), False


def _read_groups(found: Beginning, steps: list[Step]) -> None:
    made = {
        step.fields.get("consumerGroup", "")
        for step in steps
        if step.deed is Deed.IS_ANSWERED and step.answer_code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    }
    for step in steps:
        if step.deed is Deed.ASKS_BROKER and step.code == RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP and step.body:
            made.add(SUBSCRIPTION_GROUP.decode(step.body).name)
        elif step.deed is Deed.IS_ANSWERED and step.request is not None and step.answer_code == 0:
            shown: list[SubscriptionGroup] = []
            if step.code == RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG:
                shown = [SUBSCRIPTION_GROUP.decode(step.body)]
            elif step.code == RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG:
                shown = list(GroupTable.decode(step.body).groups.values())
            elif step.code == RequestCode.INVOKE_BROKER_TO_RESET_OFFSET:
                shown = [SubscriptionGroup(step.fields["group"])]
            elif step.code == RequestCode.SET_MESSAGE_REQUEST_MODE:
                mode = _json(step.request.body)
                shown = [SubscriptionGroup(mode["consumerGroup"])]
                found.topics.setdefault(mode["topic"], TopicConfig(mode["topic"], _QUEUES, _QUEUES))
            for group in shown:
                if group.name not in made:  # to ask for a group may make it
                    found.groups.setdefault(group.name, group)


def _read_offsets(found: Beginning, steps: list[Step]) -> None:
    committed: set[tuple[str, str, int]] = set()
    for step in steps:
        fields = step.fields if step.frame is not None else {}
        if step.deed not in (Deed.ASKS_BROKER, Deed.IS_ANSWERED) or "consumerGroup" not in fields:
            continue
        key = (fields["consumerGroup"], fields.get("topic", ""), _number(fields.get("queueId")))
        if step.deed is Deed.ASKS_BROKER:
            commits_by_pull = step.code in (11, 361) and _number(fields.get("sysFlag")) & _COMMITS_OFFSET
            if step.code == RequestCode.UPDATE_CONSUMER_OFFSET or commits_by_pull:
                committed.add(key)
        elif key not in committed and (offset := _committed_offset(step)):  # 0 is said of new groups as well
            found.offsets.setdefault(key, offset)

    for step in answers(steps, RequestCode.GET_CONSUME_STATS):
        for queue, stats in ConsumeStats.decode(step.body).offsets.items():
            key = (step.fields["consumerGroup"], queue.topic, queue.queue_id)
            if key not in committed:
                found.offsets.setdefault(key, stats.consumer_offset)
            found.queue_ends.setdefault((queue.topic, queue.queue_id), stats.broker_offset)
            found.topics.setdefault(queue.topic, TopicConfig(queue.topic, _QUEUES, _QUEUES))
    for step in answers(steps, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO):
        for group in GroupList.decode(step.body).groups:
            found.offsets.setdefault((group, step.fields["topic"], 0), 0)


def _committed_offset(step: Step) -> int:
    is_told = step.code == RequestCode.QUERY_CONSUMER_OFFSET and step.answer_code == 0
    return int(step.answer_fields["offset"]) if is_told else 0


def _read_members(found: Beginning, steps: list[Step]) -> None:
    beating: set[str] = set()
    for step in steps:
        if step.deed is Deed.ASKS_BROKER and step.code == RequestCode.HEART_BEAT:
            beating.update(_beating_groups(step))
    asked_on = {
        (step.header["extFields"].get("clientId"), step.header["extFields"].get("consumerGroup")): step.connection
        for step in steps
        if step.deed is Deed.IS_ASKED
    }
    seen: set[tuple[str, str]] = set()
    for step in answers(steps, 38, 203, 307, 309):
        group = step.fields.get("consumerGroup", "")
        if step.answer_code != 0 or group in beating:
            continue
        for client_id, data in _consumers_shown_by(step, group):
            connection = asked_on.get((client_id, group), -1 - len(found.members))
            if (client_id, group) not in seen:
                seen.add((client_id, group))
                found.members.append(Member(client_id, connection, consumer=data))
    for step in answers(steps, 204, 328):
        if step.answer_code == 0:
            for client_id, group in _producers_shown_by(step):
                found.members.append(Member(client_id, -1 - len(found.members), producer=ProducerData(group)))


def _consumers_shown_by(step: Step, group: str) -> Iterator[tuple[str, ConsumerData]]:
    topics = ("TopicTest", "%RETRY%" + group)
    data = ConsumerData(
        group,
        "CONSUME_PASSIVELY",
        "CLUSTERING",
        "CONSUME_FROM_FIRST_OFFSET",
        tuple(SubscriptionData(topic) for topic in topics),
    )
    if step.code == RequestCode.GET_CONSUMER_LIST_BY_GROUP:
        yield from ((client_id, data) for client_id in _json(step.body)["consumerIdList"])
    elif step.code == RequestCode.GET_CONSUMER_CONNECTION_LIST:
        shown = _json(step.body)
        subscriptions = tuple(SubscriptionData(str(topic)) for topic in shown["subscriptionTable"])
        data = ConsumerData(
            group, shown["consumeType"], shown["messageModel"], shown["consumeFromWhere"], subscriptions
        )
        yield from ((client["clientId"], data) for client in shown["connectionSet"])
    else:
        yield step.fields["clientId"], data


def _producers_shown_by(step: Step) -> Iterator[tuple[str, str]]:
    shown = _json(step.body)
    if step.code == RequestCode.GET_PRODUCER_CONNECTION_LIST:
        yield from ((client["clientId"], step.fields["producerGroup"]) for client in shown["connectionSet"])
    else:
        yield from ((client["clientId"], group) for group, clients in shown["data"].items() for client in clients)


# ── making it so ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Stock:
    """Puts messages where the real broker had them."""

    def __init__(self, broker: Broker, clock: FakeClock) -> None:
        self._store = broker.store
        self._clock = clock
        self.places: set[int] = set()  # physical offsets that are those of the real broker

    def lay(self, beginning: Beginning) -> None:
        """All messages of the beginning."""
        records = {place: decode_record(raw) for place, raw in beginning.records.items()}
        times = [message.store_timestamp for message in records.values()]
        self._clock.set(min([*times, beginning.began_ms - 60_000]))
        for place, raw in sorted(beginning.records.items()):
            self._use_room(place, _ends_before(place, records, beginning.queue_ends))
            head, message = read_head(raw, 0, place), records[place]
            assert head is not None
            self._clock.set(message.store_timestamp)
            self.lengthen((message.topic, message.queue_id), message.queue_offset)
            self.fill_to(place)
            self._store.put(
                PutMessage(
                    message.topic,
                    message.queue_id,
                    message.body,
                    head.properties,
                    message.flag,
                    message.sys_flag,
                    message.born_timestamp,
                    pack_host(message.born_host),
                    message.reconsume_times,
                    message.prepared_transaction_offset,
                )
            )
        for key, end in beginning.queue_ends.items():
            self.lengthen(key, end)
        self._store.dispatch()
        self._clock.set(beginning.began_ms)

    def _use_room(self, place: int, ends: Mapping[QueueKey, int]) -> None:
        """Lengthen queues by messages that nobody saw, as long as they fit before a place."""
        self._store.dispatch()
        for key, end in ends.items():
            if key[0] == _TIMER:
                continue
            for _ in range(self._store.max_offset(*key), end):
                left = place - self._store.confirm_offset - SMALLEST_RECORD - len(key[0].encode()) - 1
                if left < _FILLER_FRAME:
                    break
                self._put_unseen(key)
        self._store.dispatch()

    def _put_unseen(self, key: QueueKey) -> None:
        self._store.put(PutMessage(*key, b"x", _TO_FILLER if key[0] == _SCHEDULE else b""))

    def lengthen(self, key: QueueKey, end: int) -> None:
        """Let a queue end there, at least."""
        if key[0] == _TIMER:
            return
        self._store.dispatch()
        for _ in range(self._store.max_offset(*key), end):
            self._put_unseen(key)
        self._store.dispatch()

    def fill_to(self, place: int) -> None:
        """Let the next record begin there, if the log is not longer already."""
        while (gap := place - self._store.confirm_offset) >= _FILLER_FRAME:
            size = gap if gap <= 50_000 else 40_000
            self._store.put(PutMessage(FILLER, 0, bytes(size - _FILLER_FRAME)))
        if place == self._store.confirm_offset:
            self.places.add(place)


def _ends_before(
    place: int, records: Mapping[int, StoredMessage], queue_ends: Mapping[QueueKey, int]
) -> dict[QueueKey, int]:
    """How long each queue may be before the record at a place is put."""
    ends = dict(queue_ends)
    for at, message in records.items():
        key = (message.topic, message.queue_id)
        if at >= place:
            ends[key] = min(ends.get(key, message.queue_offset), message.queue_offset)
    return ends


def arrange_tables(broker: Broker, beginning: Beginning) -> None:
    """Topics, groups and offsets."""
    topics = broker.tables.topics
    known = {name: _merged(topics.topics.get(name), config) for name, config in beginning.topics.items()}
    topics.replace(Topics(topics.data_version, {**topics.topics, **known}))
    groups = broker.tables.groups
    groups.replace(SubscriptionGroups(groups.data_version, {**groups.groups, **beginning.groups}))
    for (group, topic, queue_id), offset in beginning.offsets.items():
        broker.tables.offsets.commit(group, topic, queue_id, offset)


def _merged(ours: TopicConfig | None, theirs: TopicConfig) -> TopicConfig:
    """What a route shows says nothing of attributes and order."""
    if ours is None or theirs.attributes:
        return theirs
    return replace(ours, read_queues=theirs.read_queues, write_queues=theirs.write_queues, permission=theirs.permission)
