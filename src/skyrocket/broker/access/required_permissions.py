"""What a request needs: which topics, groups or cluster it touches, and how. One table for both generations of ACL.

A code that is not in the table needs the right to change the cluster, so that a new request is closed until somebody
decides. Where RocketMQ asks for nothing but a signature although messages, offsets or tables are read or changed (lite
pulls, batch acknowledgements, topic lists, settings …) the table asks for the right too.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from skyrocket.errors import DataError
from skyrocket.format.message_id import parse_offset_message_id
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.protocol.bodies.assignment import AssignmentQuery, RequestMode
from skyrocket.protocol.bodies.batch_ack import BatchAck
from skyrocket.protocol.bodies.groups import SUBSCRIPTION_GROUP, GroupConfigList
from skyrocket.protocol.bodies.heartbeat import Heartbeat
from skyrocket.protocol.bodies.locks import QueueLocks
from skyrocket.protocol.bodies.subscription import ClientConfigCheck
from skyrocket.protocol.bodies.topics import TopicConfigList
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand

TOPIC: Final = "Topic"
GROUP: Final = "Group"
CLUSTER: Final = "Cluster"

Actions: TypeAlias = frozenset[str]  # any one of them will do


class Permission(NamedTuple):
    """One resource, and the actions of which one must be allowed."""

    kind: str
    name: str
    actions: Actions

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


PUB: Final[Actions] = frozenset({"Pub"})
SUB: Final[Actions] = frozenset({"Sub"})
GET: Final[Actions] = frozenset({"Get"})
CREATE: Final[Actions] = frozenset({"Create"})
UPDATE: Final[Actions] = frozenset({"Update"})
DELETE: Final[Actions] = frozenset({"Delete"})
SUB_OR_GET: Final = SUB | GET
SUB_OR_UPDATE: Final = SUB | UPDATE

Fields: TypeAlias = Mapping[str, str]
Reader: TypeAlias = Callable[[Fields, RemotingCommand], Iterator[Permission]]
TopicOfRecord: TypeAlias = Callable[[int], str | None]

_NO_FIELDS: Final[Fields] = {}
_REPLY_SUFFIX: Final = "_REPLY_TOPIC"
_MESSAGE_ID: Final = "msgId"


def topic_need(topic: str, actions: Actions, group: str | None = None) -> Iterator[Permission]:
    """A topic, read or written by a group. A retry topic belongs to its group, pop's to a topic as well."""
    if not topic.startswith(RETRY_PREFIX):
        yield Permission(TOPIC, topic, actions)
        return
    owner = topic.removeprefix(RETRY_PREFIX)
    if group and owner[len(group) : len(group) + 1] in ("+", "_") and owner.startswith(group):
        yield Permission(GROUP, group, actions)
        yield Permission(TOPIC, owner[len(group) + 1 :], actions)
    else:
        yield Permission(GROUP, owner, actions)


# ── readers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _sends(field: str) -> Reader:
    def read(fields: Fields, _: RemotingCommand) -> Iterator[Permission]:
        topic = fields.get(field, "")
        return topic_need(topic, SUB if topic.startswith(RETRY_PREFIX) else PUB)

    return read


def _replies(field: str) -> Reader:
    """RocketMQ: whoever has signed may answer, and what is answered with bears the name of the reply topic."""
    return lambda fields, request: (
        iter(()) if fields.get(field, "").endswith(_REPLY_SUFFIX) else _sends(field)(fields, request)
    )


def _topic_then_group(actions: Actions, topic: str = "topic", group: str = "consumerGroup") -> Reader:
    def read(fields: Fields, _: RemotingCommand) -> Iterator[Permission]:
        name = fields.get(group, "")
        yield from topic_need(fields.get(topic, ""), actions, name)
        yield Permission(GROUP, name, actions)

    return read


def _group_then_topic(actions: Actions, group: str = "consumerGroup", topic: str = "topic") -> Reader:
    def read(fields: Fields, _: RemotingCommand) -> Iterator[Permission]:
        name = fields.get(group, "")
        yield Permission(GROUP, name, actions)
        if fields.get(topic):
            yield from topic_need(fields[topic], actions, name)

    return read


def _topic(actions: Actions, field: str = "topic") -> Reader:
    return lambda fields, _: topic_need(fields.get(field, ""), actions)


def _group(actions: Actions, field: str = "consumerGroup") -> Reader:
    return lambda fields, _: iter((Permission(GROUP, fields.get(field, ""), actions),))


def _end_transaction(fields: Fields, _: RemotingCommand) -> Iterator[Permission]:
    if fields.get("topic", "").strip():  # clients before 5.0 do not name it
        yield Permission(TOPIC, fields["topic"], PUB)


def _view(fields: Fields, _: RemotingCommand) -> Iterator[Permission]:
    return topic_need(fields["topic"], GET) if fields.get("topic") else iter(())


def _unregister(fields: Fields, _: RemotingCommand) -> Iterator[Permission]:
    if fields.get("consumerGroup", "").strip():
        yield Permission(GROUP, fields["consumerGroup"], SUB)


def _heartbeat(_: Fields, request: RemotingCommand) -> Iterator[Permission]:
    for consumer in Heartbeat.decode(request.body).consumers or ():
        group = consumer.group or ""
        yield Permission(GROUP, group, SUB)
        for subscription in consumer.subscriptions or ():
            yield from topic_need(subscription.topic or "", SUB, group)


def _locks(_: Fields, request: RemotingCommand) -> Iterator[Permission]:
    locks = QueueLocks.decode(request.body)
    yield Permission(GROUP, locks.group or "", SUB)
    for queue in locks.queues:
        yield from topic_need(queue.topic, SUB, locks.group)


def _client_config(_: Fields, request: RemotingCommand) -> Iterator[Permission]:
    check = ClientConfigCheck.decode(request.body)
    yield Permission(GROUP, check.group, SUB)
    if check.subscription is not None:
        yield from topic_need(check.subscription.topic or "", SUB, check.group)


def _batch_ack(_: Fields, request: RemotingCommand) -> Iterator[Permission]:
    for entry in BatchAck.decode(request.body).entries:
        yield Permission(GROUP, entry.group, SUB)
        yield from topic_need(entry.topic, SUB, entry.group)


def _assignment(_: Fields, request: RemotingCommand) -> Iterator[Permission]:
    query = AssignmentQuery.decode(request.body)
    yield from topic_need(query.topic or "", SUB, query.group)
    yield Permission(GROUP, query.group or "", SUB)


def _request_mode(_: Fields, request: RemotingCommand) -> Iterator[Permission]:
    mode = RequestMode.decode(request.body)
    yield from topic_need(mode.topic or "", UPDATE, mode.group)
    yield Permission(GROUP, mode.group or "", UPDATE)


def _topics_of_body(_: Fields, request: RemotingCommand) -> Iterator[Permission]:
    for topic in TopicConfigList.decode(request.body).topics:
        yield from topic_need(topic.name, CREATE)


def _group_of_body(_: Fields, request: RemotingCommand) -> Iterator[Permission]:
    yield Permission(GROUP, SUBSCRIPTION_GROUP.decode(request.body).name, CREATE | UPDATE)


def _groups_of_body(_: Fields, request: RemotingCommand) -> Iterator[Permission]:
    for group in GroupConfigList.decode(request.body).groups:
        yield Permission(GROUP, group.name, CREATE | UPDATE)


def _consume_stats(fields: Fields, request: RemotingCommand) -> Iterator[Permission]:
    yield from _group_then_topic(GET)(fields, request)
    for topic in filter(None, fields.get("topicList", "").split(";")):
        yield from topic_need(topic, GET, fields.get("consumerGroup"))


def _consume_queue(fields: Fields, _: RemotingCommand) -> Iterator[Permission]:
    yield from topic_need(fields.get("topic", ""), GET)
    if fields.get("consumerGroup"):
        yield Permission(GROUP, fields["consumerGroup"], GET)


def _correction(fields: Fields, _: RemotingCommand) -> Iterator[Permission]:
    for group in filter(None, fields.get("filterGroups", "").split(",")):
        yield Permission(GROUP, group, GET)
    yield Permission(GROUP, fields.get("compareGroup", ""), GET)
    yield from topic_need(fields.get("topic", ""), GET)


def _clone_offsets(fields: Fields, _: RemotingCommand) -> Iterator[Permission]:
    yield Permission(GROUP, fields.get("destGroup", ""), UPDATE)
    if fields.get("topic"):
        yield from topic_need(fields["topic"], UPDATE, fields.get("destGroup"))


_TABLE: Final[dict[int, Reader]] = {
    RequestCode.SEND_MESSAGE: _sends("topic"),
    RequestCode.SEND_MESSAGE_V2: _sends("b"),
    RequestCode.SEND_BATCH_MESSAGE: _sends("b"),
    RequestCode.SEND_REPLY_MESSAGE: _replies("topic"),
    RequestCode.SEND_REPLY_MESSAGE_V2: _replies("b"),
    RequestCode.RECALL_MESSAGE: _topic(PUB),
    RequestCode.END_TRANSACTION: _end_transaction,
    RequestCode.CONSUMER_SEND_MSG_BACK: _group(SUB, "group"),
    RequestCode.PULL_MESSAGE: _topic_then_group(SUB),
    RequestCode.LITE_PULL_MESSAGE: _topic_then_group(SUB),
    RequestCode.QUERY_MESSAGE: _topic(SUB_OR_GET),
    RequestCode.VIEW_MESSAGE_BY_ID: _view,
    RequestCode.HEART_BEAT: _heartbeat,
    RequestCode.UNREGISTER_CLIENT: _unregister,
    RequestCode.CHECK_CLIENT_CONFIG: _client_config,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: _group(SUB_OR_GET),
    RequestCode.QUERY_CONSUMER_OFFSET: _topic_then_group(SUB_OR_GET),
    RequestCode.UPDATE_CONSUMER_OFFSET: _topic_then_group(SUB_OR_UPDATE),
    RequestCode.LOCK_BATCH_MQ: _locks,
    RequestCode.UNLOCK_BATCH_MQ: _locks,
    RequestCode.POP_MESSAGE: _group_then_topic(SUB),
    RequestCode.ACK_MESSAGE: _group_then_topic(SUB),
    RequestCode.BATCH_ACK_MESSAGE: _batch_ack,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: _group_then_topic(SUB),
    RequestCode.NOTIFICATION: _group_then_topic(SUB),
    RequestCode.PEEK_MESSAGE: _topic_then_group(SUB),
    RequestCode.POLLING_INFO: _group_then_topic(GET),
    RequestCode.QUERY_ASSIGNMENT: _assignment,
    RequestCode.SET_MESSAGE_REQUEST_MODE: _request_mode,
    RequestCode.CONSUME_MESSAGE_DIRECTLY: _group_then_topic(SUB),
    RequestCode.GET_MAX_OFFSET: _topic(GET),
    RequestCode.GET_MIN_OFFSET: _topic(GET),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: _topic(GET),
    RequestCode.GET_EARLIEST_MSG_STORETIME: _topic(GET),
    RequestCode.GET_TOPIC_STATS_INFO: _topic(GET),
    RequestCode.GET_TOPIC_CONFIG: _topic(GET),
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: _topic(GET),
    RequestCode.QUERY_CONSUME_QUEUE: _consume_queue,
    RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: _topic(GET),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: _group(GET),
    RequestCode.GET_CONSUMER_RUNNING_INFO: _group(GET),
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: _group(GET, "group"),
    RequestCode.QUERY_TOPICS_BY_CONSUMER: _group(GET, "group"),
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: _group_then_topic(GET, "group"),
    RequestCode.GET_CONSUME_STATS: _consume_stats,
    RequestCode.QUERY_CONSUME_TIME_SPAN: _topic_then_group(GET, group="group"),
    RequestCode.QUERY_CORRECTION_OFFSET: _correction,
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: _topic_then_group(GET, group="group"),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: _group_then_topic(UPDATE, "group"),
    RequestCode.CLONE_GROUP_OFFSET: _clone_offsets,
    RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: _group_then_topic(UPDATE, "group"),
    RequestCode.RESUME_CHECK_HALF_MESSAGE: _topic(UPDATE),
    RequestCode.UPDATE_AND_CREATE_TOPIC: _topic(CREATE),
    RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: _topic(CREATE),
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: _topics_of_body,
    RequestCode.DELETE_TOPIC_IN_BROKER: _topic(DELETE),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: _group_of_body,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: _groups_of_body,
    RequestCode.DELETE_SUBSCRIPTIONGROUP: _group(DELETE, "groupName"),
}

# What shows the cluster as a whole; whatever else there is changes it.
_CLUSTER_READS: Final = frozenset(
    {
        RequestCode.GET_ALL_TOPIC_CONFIG,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        RequestCode.GET_ALL_CONSUMER_OFFSET,
        RequestCode.GET_ALL_DELAY_OFFSET,
        RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
        RequestCode.GET_BROKER_CONFIG,
        RequestCode.GET_BROKER_RUNTIME_INFO,
        RequestCode.GET_BROKER_HA_STATUS,
        RequestCode.GET_BROKER_CONSUME_STATS,
        RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
        RequestCode.GET_PRODUCER_CONNECTION_LIST,
        RequestCode.GET_ALL_PRODUCER_INFO,
        RequestCode.GET_COLD_DATA_FLOW_CTR_INFO,
        RequestCode.GET_TIMER_CHECK_POINT,
        RequestCode.GET_TIMER_METRICS,
        RequestCode.LIST_OPEN_TRANSACTIONS,
        RequestCode.LIST_PENDING_TIMERS,
        RequestCode.COMPARE_LOG_TAIL,
        RequestCode.LIST_QUOTAS,
        RequestCode.LIST_TOPIC_OWNERS,
        RequestCode.VIEW_BROKER_STATS_DATA,
        RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON,
        RequestCode.GET_BROKER_CLUSTER_ACL_INFO,
        RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG,
        RequestCode.AUTH_GET_USER,
        RequestCode.AUTH_LIST_USER,
        RequestCode.AUTH_GET_ACL,
        RequestCode.AUTH_LIST_ACL,
    }
)

# Requests about one record: where they say which it is, and what its own topic must allow.
_RECORDS: Final[dict[int, tuple[str, Actions]]] = {
    RequestCode.VIEW_MESSAGE_BY_ID: ("offset", GET),
    RequestCode.CONSUMER_SEND_MSG_BACK: ("offset", SUB),
    RequestCode.END_TRANSACTION: ("commitLogOffset", PUB),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: (_MESSAGE_ID, SUB),
    RequestCode.RESUME_CHECK_HALF_MESSAGE: (_MESSAGE_ID, UPDATE),
}

# The frequent ones, whose needs are known by these two fields.
DECIDED_BY: Final[dict[int, tuple[str, str]]] = {
    RequestCode.SEND_MESSAGE: ("topic", ""),
    RequestCode.SEND_MESSAGE_V2: ("b", ""),
    RequestCode.SEND_BATCH_MESSAGE: ("b", ""),
    **dict.fromkeys(
        (
            RequestCode.PULL_MESSAGE,
            RequestCode.LITE_PULL_MESSAGE,
            RequestCode.QUERY_CONSUMER_OFFSET,
            RequestCode.UPDATE_CONSUMER_OFFSET,
            RequestCode.POP_MESSAGE,
            RequestCode.ACK_MESSAGE,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
            RequestCode.NOTIFICATION,
        ),
        ("topic", "consumerGroup"),
    ),
}


class RequiredPermissions:
    """Reads off requests what they need.

    `topic_of_record` tells what lies at an offset of the log: a message may be shown, given to a client or sent back
    to a group only by those who may read its own topic, and a transaction ended by those who may send to it. RocketMQ
    believes the topic in the request.
    """

    def __init__(self, cluster: str, topic_of_record: TopicOfRecord = lambda _: None) -> None:
        self._see = (Permission(CLUSTER, cluster, GET),)
        self._change = (Permission(CLUSTER, cluster, UPDATE),)
        self._topic_of_record = topic_of_record

    def of(self, request: RemotingCommand) -> list[Permission]:
        """What a request needs, in the order of RocketMQ's checks; raises MalformedBody."""
        code = request.code
        read = _TABLE.get(code)
        if read is None:
            return list(self._see if code in _CLUSTER_READS else self._change)
        fields = request.ext_fields or _NO_FIELDS
        needs = list(read(fields, request))
        if code in _RECORDS:
            needs += self._of_record(fields, *_RECORDS[code])
            return needs or self._of_nothing(code)
        return needs

    def _of_record(self, fields: Fields, field: str, actions: Actions) -> Iterator[Permission]:
        offset = _offset(field, fields.get(field, ""))
        topic = None if offset is None else self._topic_of_record(offset)
        return iter(()) if topic is None else topic_need(topic, actions, fields.get("group"))

    def _of_nothing(self, code: int) -> list[Permission]:
        """Whoever asks for a message that is not there learns just that."""
        return list(self._see) if code == RequestCode.VIEW_MESSAGE_BY_ID else []


def _offset(field: str, text: str) -> int | None:
    """Of a record: as a number, or in the id of its message. What is none here is none for handlers either."""
    try:
        return parse_offset_message_id(text).physical_offset if field == _MESSAGE_ID else int(text)
    except (DataError, ValueError):
        return None
