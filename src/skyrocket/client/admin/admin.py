"""Admin: topics, groups, offsets, queries, routes, connections.

    async with Admin("127.0.0.1:9876") as admin:
        await admin.create_topic("Orders", queues=8)

Each call asks name servers and brokers anew; nothing is remembered. Changes go to every master of a cluster.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

from skyrocket.client.admin.dead_letters import DeadLetterFilter, DeadLetters
from skyrocket.client.admin.reset_preview import QueueMove, ResetPreview
from skyrocket.client.admin.waiting_messages import OpenTransaction, PendingTimer, WaitingMessages, recalled_place
from skyrocket.client.consumer.start_position import max_offset, min_offset, offset_at
from skyrocket.client.core.credentials import Acl
from skyrocket.client.core.errors import AlreadyStarted, BrokerRefused, ClientError, NoRoute, NotRunning, WrongUse
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.lifecycle import Startable, State
from skyrocket.client.core.message import ReceivedMessage, decode_messages
from skyrocket.client.core.names import TEMPLATE_TOPIC, check_creatable, check_group, retry_topic, unwrap, wrap
from skyrocket.client.core.routes import MASTER_ID, Route
from skyrocket.client.core.send_receipt import SendReceipt
from skyrocket.client.core.settings import ClientSettings, settings_of
from skyrocket.client.tracing.trace import TRACE_TOPIC, events_of
from skyrocket.errors import DataError
from skyrocket.format.message_id import host_text, parse_offset_message_id
from skyrocket.format.trace import TraceEvent
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import PERM_READ, PERM_WRITE, SINGLE_TAG, TopicConfig
from skyrocket.protocol.bodies.connections import (
    CONSUMER_CONNECTIONS,
    PRODUCER_CONNECTIONS,
    ConsumerConnections,
    ProducerConnections,
)
from skyrocket.protocol.bodies.groups import GROUP_TABLE, SUBSCRIPTION_GROUP
from skyrocket.protocol.bodies.offsets import RESET_OFFSETS
from skyrocket.protocol.bodies.route import CLUSTER_INFO, ClusterInfo
from skyrocket.protocol.bodies.running_info import CONSUMER_RUNNING_INFO, ConsumerRunningInfo
from skyrocket.protocol.bodies.statistics import CONSUME_STATS, TOPIC_STATS, OffsetLag, TopicOffset
from skyrocket.protocol.bodies.topics import TOPIC_CONFIG, TOPIC_LIST
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.admin_groups import (
    DeleteSubscriptionGroup,
    GetAllSubscriptionGroupConfig,
    GetConsumerConnectionList,
    GetConsumeStats,
    GetProducerConnectionList,
    UpdateAndCreateSubscriptionGroup,
)
from skyrocket.protocol.requests.admin_topics import (
    DeleteTopicInBroker,
    GetTopicConfig,
    GetTopicStatsInfo,
    UpdateAndCreateTopic,
)
from skyrocket.protocol.requests.header import Header, Request
from skyrocket.protocol.requests.offsets import (
    CloneGroupOffset,
    GetEarliestMsgStoreTime,
    QueryConsumerOffset,
    ResetOffset,
    UpdateConsumerOffset,
)
from skyrocket.protocol.requests.query import QueryMessage, ViewMessageById
from skyrocket.protocol.requests.route import DeleteTopicInNamesrv, GetAllTopicList, GetBrokerClusterInfo
from skyrocket.protocol.requests.server_to_client import GetConsumerRunningInfo
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.exchange import Reply

A = TypeVar("A", bound=Header)

_QUERY_WINDOW_MS: Final = 3 * 24 * 3600 * 1000
_TO_THE_END: Final = -1
_MESSAGE_ID: Final = re.compile("[0-9A-Fa-f]{32,64}")
ALL_DEAD_LETTERS: Final = DeadLetterFilter()


@dataclass(frozen=True, slots=True)
class QueueLag:
    """How far a group is in one queue."""

    queue: MessageQueue
    broker_offset: int
    consumer_offset: int
    last_timestamp: int

    @property
    def lag(self) -> int:
        """Messages that wait."""
        return self.broker_offset - self.consumer_offset


class Admin(Startable):
    """Operations on a cluster."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = "",
        *,
        client: ClientSettings | None = None,
        credentials: Acl | None = None,
        timeout: float = 5.0,
    ) -> None:
        self._client = settings_of(client, name_servers, credentials)
        self._namespace = self._client.effective_namespace()
        self._timeout = timeout
        self._state = State.NEW
        self._instance: ClientInstance

    def __repr__(self) -> str:
        return "admin"

    async def start(self) -> None:
        """Raises AlreadyStarted or NoNameServer."""
        if self._state is not State.NEW:
            raise AlreadyStarted(str(self), self._state.value)
        self._instance = await ClientInstance.acquire(self._client)
        self._state = State.RUNNING

    async def stop(self) -> None:
        """May be called again."""
        if self._state is State.RUNNING:
            self._state = State.STOPPED
            await self._instance.release()

    # ── the cluster ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def cluster(self) -> ClusterInfo:
        """All brokers with their addresses."""
        return CLUSTER_INFO.decode((await self._names(GetBrokerClusterInfo())).body)

    async def route(self, topic: str) -> Route:
        """Where a topic is; raises NoRoute."""
        self._check_running()
        return await self._instance.route(self._full(topic), fresh=True)

    async def _masters(self, cluster: str | None, broker: str | None = None) -> list[str]:
        return list((await self._named_masters(cluster, broker)).values())

    async def _named_masters(self, cluster: str | None, broker: str | None = None) -> dict[str, str]:
        info = await self.cluster()
        if cluster is not None and cluster not in info.clusters:
            raise WrongUse(f"cluster {cluster} is not known; there are {', '.join(sorted(info.clusters)) or 'none'}")
        wanted = set(info.brokers) if cluster is None else set(info.clusters[cluster])
        if broker is not None:
            wanted &= {broker}
        masters = {
            name: data.addresses[MASTER_ID]
            for name, data in sorted(info.brokers.items())
            if name in wanted and MASTER_ID in data.addresses
        }
        if not masters:
            raise ClientError(
                f"no broker with a master is registered at {self._instance.names}"
                + (f" under the name {broker}" if broker else "")
                + ": start one, or check the names"
            )
        return masters

    # ── topics ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def create_topic(
        self,
        topic: str,
        queues: int = 8,
        *,
        permission: int = PERM_READ | PERM_WRITE,
        cluster: str | None = None,
        broker: str | None = None,
        ordered: bool = False,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """Create it or change it, on all masters, or those of a cluster or a broker."""
        check_creatable(topic)
        request = UpdateAndCreateTopic(
            topic=self._full(topic),
            default_topic=TEMPLATE_TOPIC,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=permission,
            topic_filter_type=SINGLE_TAG,
            order=ordered,
            topic_sys_flag=0,
            attributes=",".join(f"+{name}={value}" for name, value in attributes.items()) if attributes else None,
        )
        for address in await self._masters(cluster, broker):
            await self._ask(address, request, doing=f"creating topic {topic}")

    async def delete_topic(self, topic: str, *, cluster: str | None = None) -> None:
        """From brokers and name servers."""
        for address in await self._masters(cluster):
            await self._ask(address, DeleteTopicInBroker(topic=self._full(topic)), doing=f"deleting topic {topic}")
        for address in self._instance.names.addresses:
            request = DeleteTopicInNamesrv(topic=self._full(topic), cluster_name=cluster)
            await self._ask(address, request, doing=f"deleting topic {topic}")
        self._instance.routes.pop(self._full(topic), None)

    async def topics(self) -> list[str]:
        """All that the name servers know; those of the namespace, if there is one."""
        names = TOPIC_LIST.decode((await self._names(GetAllTopicList())).body).topics
        if not self._namespace:
            return sorted(names)
        return sorted(unwrap(self._namespace, name) for name in names if unwrap(self._namespace, name) != name)

    async def topic_config(self, topic: str) -> TopicConfig:
        """As a broker has it."""
        address = await self._instance_of().any_broker_of(self._full(topic))
        reply = await self._ask(address, GetTopicConfig(topic=self._full(topic)), doing=f"asking for topic {topic}")
        return TOPIC_CONFIG.decode(reply.body)

    async def topic_offsets(self, topic: str) -> dict[MessageQueue, TopicOffset]:
        """First and last offset of every queue."""
        found: dict[MessageQueue, TopicOffset] = {}
        for address in await self._masters_of(self._full(topic)):
            request = GetTopicStatsInfo(topic=self._full(topic))
            reply = await self._ask(address, request, doing=f"asking for the offsets of topic {topic}")
            found.update(TOPIC_STATS.decode(reply.body).offsets)
        return {self._shown(queue): offset for queue, offset in found.items()}

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The queues that can be read."""
        return [self._shown(queue) for queue in sorted((await self.route(topic)).read_queues)]

    async def max_offset(self, queue: MessageQueue) -> int:
        """The offset of the next message."""
        return await max_offset(self._instance_of(), self._full_queue(queue))

    async def min_offset(self, queue: MessageQueue) -> int:
        """The offset of the first message that is still there."""
        return await min_offset(self._instance_of(), self._full_queue(queue))

    async def offset_at(self, queue: MessageQueue, moment: datetime | float) -> int:
        """The first message stored at or after a moment."""
        return await offset_at(self._instance_of(), self._full_queue(queue), _ms(moment))

    async def earliest_time(self, queue: MessageQueue) -> int:
        """When the first message that is still there was stored, in ms since 1970; -1 for an empty queue."""
        full = self._full_queue(queue)
        request = GetEarliestMsgStoreTime(topic=full.topic, queue_id=full.queue_id, broker_name=full.broker_name)
        address = await self._instance_of().master_of(full)
        return (await self._ask(address, request, doing=f"asking for the first time of {queue}")).header.timestamp

    # ── groups ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def create_group(self, group: SubscriptionGroup | str, *, cluster: str | None = None) -> None:
        """Create it or change it, on all masters."""
        wanted = SubscriptionGroup(group) if isinstance(group, str) else group
        check_group(wanted.name)
        body = SUBSCRIPTION_GROUP.encode(replace(wanted, name=wrap(self._namespace, wanted.name)))
        for address in await self._masters(cluster):
            request = UpdateAndCreateSubscriptionGroup()
            await self._ask(address, request, body, doing=f"creating group {wanted.name}")

    async def delete_group(self, group: str, *, cluster: str | None = None, with_offsets: bool = False) -> None:
        """From all masters."""
        request = DeleteSubscriptionGroup(group_name=wrap(self._namespace, group), clean_offset=with_offsets)
        for address in await self._masters(cluster):
            await self._ask(address, request, doing=f"deleting group {group}")

    async def groups(self, *, cluster: str | None = None) -> dict[str, SubscriptionGroup]:
        """All groups by name."""
        found: dict[str, SubscriptionGroup] = {}
        for address in await self._masters(cluster):
            reply = await self._ask(address, GetAllSubscriptionGroupConfig(), doing="asking for groups")
            found.update(GROUP_TABLE.decode(reply.body).groups)
        return found

    async def consumer_connections(self, group: str) -> ConsumerConnections:
        """The members of a group and what they subscribe to; raises BrokerRefused (206) when nobody is there."""
        full = wrap(self._namespace, group)
        address = await self._instance_of().any_broker_of(retry_topic(full))
        request = GetConsumerConnectionList(consumer_group=full)
        reply = await self._ask(address, request, doing=f"asking who is in group {group}")
        return CONSUMER_CONNECTIONS.decode(reply.body)

    async def producer_connections(self, group: str, topic: str) -> ProducerConnections:
        """The producers of a group that a broker of the topic knows."""
        address = await self._instance_of().any_broker_of(self._full(topic))
        request = GetProducerConnectionList(producer_group=wrap(self._namespace, group))
        reply = await self._ask(address, request, doing=f"asking for producers of group {group}")
        return PRODUCER_CONNECTIONS.decode(reply.body)

    async def running_info(self, group: str, client_id: str, *, with_stacks: bool = False) -> ConsumerRunningInfo:
        """What a member of a group tells about itself."""
        full = wrap(self._namespace, group)
        address = await self._instance_of().any_broker_of(retry_topic(full))
        request = GetConsumerRunningInfo(consumer_group=full, client_id=client_id, jstack_enable=with_stacks)
        reply = await self._ask(address, request, doing=f"asking {client_id} how it is")
        return CONSUMER_RUNNING_INFO.decode(reply.body)

    # ── offsets of groups ────────────────────────────────────────────────────────────────────────────────────────────

    async def consumer_lag(self, group: str, topic: str | None = None) -> list[QueueLag]:
        """How far a group is in each queue."""
        full = wrap(self._namespace, group)
        route_topic = retry_topic(full) if topic is None else self._full(topic)
        lags: dict[MessageQueue, OffsetLag] = {}
        for address in await self._masters_of(route_topic):
            request = GetConsumeStats(consumer_group=full, topic=None if topic is None else self._full(topic))
            reply = await self._ask(address, request, doing=f"asking how far group {group} is")
            lags.update(CONSUME_STATS.decode(reply.body).offsets)
        return [
            QueueLag(self._shown(queue), lag.broker_offset, lag.consumer_offset, lag.last_timestamp)
            for queue, lag in sorted(lags.items())
        ]

    async def committed(self, group: str, queue: MessageQueue) -> int | None:
        """The offset that a group goes on with, None if it has none."""
        full = self._full_queue(queue)
        request = QueryConsumerOffset(
            consumer_group=wrap(self._namespace, group),
            topic=full.topic,
            queue_id=full.queue_id,
            set_zero_if_not_found=False,
            broker_name=full.broker_name,
        )
        address = await self._instance_of().master_of(full)
        try:
            return (await self._ask(address, request, doing=f"asking how far group {group} is")).header.offset
        except BrokerRefused as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise

    async def set_offset(self, group: str, queue: MessageQueue, offset: int) -> None:
        """For a group that is not running; members that run would overwrite it."""
        full = self._full_queue(queue)
        request = UpdateConsumerOffset(
            consumer_group=wrap(self._namespace, group),
            topic=full.topic,
            queue_id=full.queue_id,
            commit_offset=offset,
            broker_name=full.broker_name,
        )
        address = await self._instance_of().master_of(full)
        await self._ask(address, request, doing=f"setting an offset of group {group}")

    async def reset_offsets(
        self, group: str, topic: str, moment: datetime | float | None, *, force: bool = True
    ) -> dict[MessageQueue, int]:
        """Let a group consume anew from a moment on, or (None) go to the end; running members are told by brokers."""
        timestamp = _TO_THE_END if moment is None else _ms(moment)
        full = self._full(topic)
        request = ResetOffset(topic=full, group=wrap(self._namespace, group), timestamp=timestamp, is_force=force)
        found: dict[MessageQueue, int] = {}
        try:
            for address in await self._masters_of(full):
                reply = await self._ask(address, request, doing=f"resetting group {group}")
                found.update(RESET_OFFSETS.decode(reply.body).offsets)
        except BrokerRefused as error:
            if error.code not in (ResponseCode.CONSUMER_NOT_ONLINE, ResponseCode.REQUEST_CODE_NOT_SUPPORTED):
                raise
            found = await self._reset_offline(group, topic, moment)  # nobody runs who could be told
        return {self._shown(queue): offset for queue, offset in found.items()}

    async def _reset_offline(self, group: str, topic: str, moment: datetime | float | None) -> dict[MessageQueue, int]:
        found: dict[MessageQueue, int] = {}
        for queue in await self.queues(topic):
            offset = await (self.max_offset(queue) if moment is None else self.offset_at(queue, moment))
            await self.set_offset(group, queue, offset)
            found[queue] = offset
        return found

    async def preview_reset(self, group: str, topic: str, moment: datetime | float | None) -> ResetPreview:
        """What `reset_offsets` with the same arguments would skip or repeat; changes nothing."""
        moves = await asyncio.gather(*(self._move(group, queue, moment) for queue in await self.queues(topic)))
        return ResetPreview(group, topic, tuple(moves))

    async def _move(self, group: str, queue: MessageQueue, moment: datetime | float | None) -> QueueMove:
        first, end = await self.min_offset(queue), await self.max_offset(queue)
        target = end if moment is None else await self.offset_at(queue, moment)
        return QueueMove(queue, await self.committed(group, queue), max(target, 0), max(first, 0), end)

    async def clone_offsets(self, source: str, target: str, topic: str, *, even_if_online: bool = True) -> None:
        """Let a group go on in a topic where another one is; members of the target that run would overwrite it.

        Without `even_if_online` a source that runs and does not subscribe to the topic any more is passed over.
        """
        full = self._full(topic)
        request = CloneGroupOffset(
            src_group=wrap(self._namespace, source),
            dest_group=wrap(self._namespace, target),
            topic=full,
            offline=even_if_online,
        )
        for address in await self._masters_of(full):
            await self._ask(address, request, doing=f"copying the offsets of group {source} to {target}")

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def message(self, topic: str, message_id: str) -> ReceivedMessage:
        """By its offset id or its unique key; raises ClientError when there is none."""
        try:
            place = parse_offset_message_id(message_id)
        except DataError as error:
            raise WrongUse(str(error)) from None
        by_key = await self.query_by_unique_key(topic, message_id)
        if by_key:
            return by_key[0]
        request = ViewMessageById(offset=place.physical_offset, topic=self._full(topic))
        try:
            reply = await self._ask(host_text(place.store_host), request, doing=f"looking for {message_id}")
        except (BrokerRefused, RemotingError) as error:
            raise ClientError(f"no message {message_id} in topic {topic}: {error}") from error
        if not reply.body:
            raise ClientError(f"no message {message_id} in topic {topic}: nothing begins at its offset")
        return self._messages(reply)[0]

    async def query_by_key(
        self, topic: str, key: str, *, most: int = 32, begin_ms: int = 0, end_ms: int = (1 << 63) - 1
    ) -> list[ReceivedMessage]:
        """Messages with a business key, oldest first."""
        found = await self._query(topic, key, most, begin_ms, end_ms, unique=False)
        return [message for message in found if key in message.keys]

    async def query_by_unique_key(self, topic: str, unique_key: str, *, most: int = 32) -> list[ReceivedMessage]:
        """Messages with a client's id: more than one when a send was repeated."""
        now_ms = self._instance_of().clock.now_ms()
        found = await self._query(topic, unique_key, most, now_ms - _QUERY_WINDOW_MS, (1 << 63) - 1, unique=True)
        return [message for message in found if message.message_id == unique_key]

    async def trace(
        self,
        message_id: str,
        *,
        topic: str = TRACE_TOPIC,
        most: int = 64,
        begin_ms: int = 0,
        end_ms: int = (1 << 63) - 1,
    ) -> list[TraceEvent]:
        """What clients have told about a message, in time's order; raises NoRoute without a trace topic."""
        found = await self.query_by_key(topic, message_id, most=most, begin_ms=begin_ms, end_ms=end_ms)
        return events_of(message_id, found)

    async def _query(
        self, topic: str, key: str, most: int, begin_ms: int, end_ms: int, *, unique: bool
    ) -> list[ReceivedMessage]:
        full = self._full(topic)
        request = QueryMessage(
            unique_key_query=unique,
            topic=full,
            key=key,
            max_num=most,
            begin_timestamp=begin_ms,
            end_timestamp=end_ms,
            index_type="U" if unique else "K",
        )
        answers = await asyncio.gather(*(self._query_one(address, request) for address in await self._masters_of(full)))
        found = [message for answer in answers for message in answer if message.stored_topic == full]
        return sorted(found, key=lambda message: message.store_timestamp)

    async def _query_one(self, address: str, request: QueryMessage) -> list[ReceivedMessage]:
        try:
            return self._messages(await self._ask(address, request, doing=f"looking for {request.key}"))
        except BrokerRefused as error:
            if error.code in (ResponseCode.QUERY_NOT_FOUND, ResponseCode.NO_MESSAGE):
                return []
            raise

    def _messages(self, reply: Reply[A]) -> list[ReceivedMessage]:
        messages = decode_messages(reply.body, "")
        for message in messages:
            message.broker_name = self._instance.brokers.name_of(message.store_host) or ""
            message.topic = unwrap(self._namespace, message.topic)
        return messages

    # ── dead letters ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def dead_letters(
        self, group: str, wanted: DeadLetterFilter = ALL_DEAD_LETTERS, *, most: int = 1000
    ) -> list[ReceivedMessage]:
        """What a group has given up, oldest first; `cause_of` tells why. Raises WrongUse for an unknown group."""
        return await DeadLetters(self._instance_of(), wrap(self._namespace, group), self._timeout).read(wanted, most)

    async def resend_dead_letters(
        self,
        group: str,
        wanted: DeadLetterFilter = ALL_DEAD_LETTERS,
        *,
        most: int = 1000,
        to_topic: bool = False,
    ) -> list[SendReceipt]:
        """Let the group have dead letters again, with all attempts before them; `to_topic`: let all groups.

        They stay among the dead letters: a second call sends them a second time.
        """
        letters = DeadLetters(self._instance_of(), wrap(self._namespace, group), self._timeout)
        return await letters.resend(await letters.read(wanted, most), to_topic=to_topic)

    # ── messages that wait ───────────────────────────────────────────────────────────────────────────────────────────

    async def open_transactions(
        self,
        topic: str | None = None,
        *,
        producer_group: str | None = None,
        transaction_id: str | None = None,
        cluster: str | None = None,
        most: int = 1000,
    ) -> list[OpenTransaction]:
        """Transactions that wait for their end, oldest first; raises NotOffered at brokers of Apache RocketMQ."""
        waiting = await self._waiting(cluster)
        return await waiting.open_transactions(topic, producer_group, transaction_id, most)

    async def end_transaction(self, transaction: OpenTransaction, *, commit: bool) -> None:
        """An operator's word in place of the producer's; raises BrokerRefused when it has ended meanwhile."""
        await (await self._waiting(None)).end_transaction(transaction, commit=commit)

    async def pending_timers(
        self,
        topic: str | None = None,
        *,
        due_from: datetime | float = 0.0,
        cluster: str | None = None,
        most: int = 1000,
    ) -> list[PendingTimer]:
        """Messages that wait for their time, soonest first; raises NotOffered at brokers of Apache RocketMQ."""
        return await (await self._waiting(cluster)).pending_timers(topic, _ms(due_from), most)

    async def timer_counts(self, *, cluster: str | None = None) -> dict[str, int]:
        """How many messages of each topic wait for their time."""
        return await (await self._waiting(cluster)).timer_counts()

    async def recall(self, timer: PendingTimer | str) -> str:
        """Take back a message that waits, given by its message id or its recall handle; returns the message id.

        Raises ClientError when none waits or the broker takes nothing back (recallMessageEnable), BrokerRefused when it
        is too late.
        """
        waiting = await self._waiting(None)
        if isinstance(timer, str) and not _MESSAGE_ID.fullmatch(timer):
            topic, broker_name = recalled_place(timer)
            return await waiting.recall_by_handle(topic, broker_name, timer)
        found = await waiting.find_timer(timer) if isinstance(timer, str) else timer
        await waiting.recall(found)
        return found.message_id

    async def _waiting(self, cluster: str | None) -> WaitingMessages:
        return WaitingMessages(self._instance_of(), await self._named_masters(cluster), self._timeout)

    # ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_running(self) -> None:
        if self._state is not State.RUNNING:
            raise NotRunning(str(self), self._state.value)

    def _instance_of(self) -> ClientInstance:
        self._check_running()
        return self._instance

    async def _names(self, request: Request[A]) -> Reply[A]:
        self._check_running()
        try:
            return await self._instance.names.call(request, timeout=self._timeout)
        except RequestError as error:
            raise BrokerRefused(str(self._instance.names), error, type(request).__name__) from error

    async def _ask(self, address: str, request: Request[A], body: bytes = b"", *, doing: str) -> Reply[A]:
        return await self._instance_of().ask(address, request, body, doing=doing, timeout=self._timeout)

    async def _masters_of(self, topic: str) -> list[str]:
        route = await self._instance_of().route(topic, fresh=True)
        found = [self._instance.brokers.master(broker.broker_name) for broker in route.data.brokers]
        masters = [address for address in found if address is not None]
        if not masters:
            raise NoRoute(topic, str(self._instance.names), "none of its brokers has a master")
        return masters

    def _full(self, topic: str) -> str:
        return wrap(self._namespace, topic)

    def _full_queue(self, queue: MessageQueue) -> MessageQueue:
        return queue._replace(topic=self._full(queue.topic))

    def _shown(self, queue: MessageQueue) -> MessageQueue:
        return queue._replace(topic=unwrap(self._namespace, queue.topic))


def _ms(moment: datetime | float) -> int:
    seconds = moment.timestamp() if isinstance(moment, datetime) else moment
    return round(seconds * 1000)
