"""Stored messages: found by id or key, with their traces."""

from collections.abc import AsyncIterator
from typing import Final, TypeVar

from skyrocket.client.admin.admin_calls import AdminCalls
from skyrocket.client.consumer.puller import PULL_CODES, reading
from skyrocket.client.core.errors import BrokerRefused, NotFound, WrongUse
from skyrocket.client.core.message import ReceivedMessage, decode_messages
from skyrocket.client.core.names import unwrap
from skyrocket.client.tracing.optional_tracer import TRACE_TOPIC
from skyrocket.client.tracing.trace import events_of
from skyrocket.errors import DataError
from skyrocket.format.message_id import host_text, parse_offset_message_id
from skyrocket.format.trace import TraceEvent
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.words import said
from skyrocket.protocol.bodies.running_info import DirectConsumption
from skyrocket.protocol.bodies.subscription import ALL_TAGS
from skyrocket.protocol.bodies.tables import QueueEntries
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.header import Header
from skyrocket.protocol.requests.query import QueryConsumeQueue, QueryMessage, ViewMessageById
from skyrocket.protocol.requests.server_to_client import ConsumeMessageDirectly
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.exchange import Reply

A = TypeVar("A", bound=Header)

TOOLS_GROUP: Final = "TOOLS_CONSUMER"  # RocketMQ's: every broker lets it read
_BATCH: Final = 32
_QUERY_WINDOW_MS: Final = 3 * 24 * 3600 * 1000
_BY_KEY, _BY_UNIQUE_KEY, _BY_TAG = "K", "U", "T"  # as the header has it


class MessageAdmin(AdminCalls):
    """Queries for stored messages."""

    async def message(self, topic: str, message_id: str) -> ReceivedMessage:
        """By its offset id or its unique key; raises NotFound when there is none."""
        try:
            position = parse_offset_message_id(message_id)
        except DataError as error:
            raise WrongUse(str(error)) from None
        by_key = await self.query_by_unique_key(topic, message_id)
        if by_key:
            return by_key[0]
        unknown = said(
            "no message {message_id} in topic {topic}: none of the last three days has this unique id",
            message_id=message_id,
            topic=topic,
        )
        host = host_text(position.store_host)
        if not 0 < position.store_host.port < 1 << 16 or position.physical_offset < 0:
            raise NotFound("{unknown}, and it is no offset id: check id and topic", unknown=unknown)
        try:
            return await self.message_by_offset_id(message_id, topic)
        except RemotingError as error:
            raise NotFound(
                "{unknown}, and no broker answers at {host}, where it was as an offset id: {error}",
                unknown=unknown,
                host=host,
                error=error,
            ) from error

    async def message_by_offset_id(self, message_id: str, topic: str | None = None) -> ReceivedMessage:
        """At the place that the id names, of whatever topic; raises NotFound when nothing begins there."""
        position = parse_offset_message_id(message_id)
        request = ViewMessageById(offset=position.physical_offset, topic=None if topic is None else self._full(topic))
        where = "" if topic is None else said(" in topic {topic}", topic=topic)
        try:
            reply = await self._ask(host_text(position.store_host), request, doing=f"looking for {message_id}")
        except BrokerRefused as error:
            raise NotFound(
                "no message {message_id}{where}: {error}", message_id=message_id, where=where, error=error
            ) from error
        if not reply.body:
            raise NotFound(
                "no message {message_id}{where}: nothing begins at its offset", message_id=message_id, where=where
            )
        return self._messages(reply)[0]

    async def message_at(self, queue: MessageQueue, offset: int) -> ReceivedMessage:
        """The message with this offset of a queue; raises NotFound when there is none."""
        async for message in self.read_queue(queue, offset, offset + 1, batch=1):
            return message
        raise NotFound(
            "queue {queue} of topic {topic} at {broker} has no offset {offset}",
            queue=queue.queue_id,
            topic=queue.topic,
            broker=queue.broker_name,
            offset=offset,
        )

    async def read_queue(
        self, queue: MessageQueue, begin: int, end: int, *, expression: str = ALL_TAGS, batch: int = _BATCH
    ) -> AsyncIterator[ReceivedMessage]:
        """Messages with offsets from `begin` to before `end`, in order; nothing is committed.

        `expression` are tags as `TagA || TagB`. Brokers are read in the name of RocketMQ's tools.
        """
        full = self._full_queue(queue)
        instance = self._instance_of()
        offset = begin
        while offset < end:
            reply = await self._ask(
                await instance.master_of(full),
                reading(TOOLS_GROUP, full, offset, min(batch, end - offset), expression),
                doing=f"reading queue {queue.queue_id} of topic {queue.topic}",
                accepted=PULL_CODES,
            )
            if reply.code == ResponseCode.SUCCESS:
                for message in decode_messages(reply.body, queue.broker_name, queue.queue_id):
                    if begin <= message.queue_offset < end:
                        message.topic = unwrap(self._namespace, message.topic)
                        message.min_offset, message.max_offset = reply.header.min_offset, reply.header.max_offset
                        yield message
            if reply.header.next_begin_offset <= offset:
                return
            offset = reply.header.next_begin_offset

    async def queue_entries(
        self, queue: MessageQueue, index: int, count: int = 10, *, group: str | None = None, broker: str | None = None
    ) -> QueueEntries:
        """Entries of a consume queue; with a group, also whether its filter lets them pass."""
        full = self._full_queue(queue)
        request = QueryConsumeQueue(
            topic=full.topic,
            queue_id=full.queue_id,
            index=index,
            count=count,
            consumer_group=None if group is None else self._full(group),
        )
        address = broker or await self._instance_of().master_of(full)
        return QueueEntries.decode((await self._ask(address, request, doing="asking for queue entries")).body)

    async def consume_directly(self, group: str, client_id: str, message: ReceivedMessage) -> DirectConsumption:
        """Let one member of a group consume a message now; offsets do not change. Only push consumers do it."""
        request = ConsumeMessageDirectly(
            consumer_group=self._full(group),
            client_id=client_id,
            msg_id=message.offset_message_id,
            broker_name=message.broker_name or None,
            topic=message.stored_topic,
        )
        reply = await self._ask(message.store_host, request, doing=f"handing {message.message_id} to {client_id}")
        return DirectConsumption.decode(reply.body)

    async def query_by_key(
        self, topic: str, key: str, *, most: int = 32, begin_ms: int = 0, end_ms: int = (1 << 63) - 1
    ) -> list[ReceivedMessage]:
        """Messages with a business key, oldest first."""
        found = await self._query(topic, key, most, begin_ms, end_ms, _BY_KEY)
        return [message for message in found if key in message.keys]

    async def query_by_tag(
        self, topic: str, tag: str, *, most: int = 32, begin_ms: int = 0, end_ms: int = (1 << 63) - 1
    ) -> list[ReceivedMessage]:
        """Messages with a tag, oldest first; brokers before RocketMQ 5.4 find none."""
        found = await self._query(topic, tag, most, begin_ms, end_ms, _BY_TAG)
        return [message for message in found if message.tags == tag]

    async def query_by_unique_key(
        self,
        topic: str,
        unique_key: str,
        *,
        most: int = 32,
        begin_ms: int | None = None,
        end_ms: int = (1 << 63) - 1,
    ) -> list[ReceivedMessage]:
        """Messages with a client's id, of the last three days or from a moment on; several after repeated sends."""
        if begin_ms is None:
            begin_ms = self._instance_of().clock.now_ms() - _QUERY_WINDOW_MS
        found = await self._query(topic, unique_key, most, begin_ms, end_ms, _BY_UNIQUE_KEY)
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
        self, topic: str, key: str, most: int, begin_ms: int, end_ms: int, index_type: str
    ) -> list[ReceivedMessage]:
        full = self._full(topic)
        request = QueryMessage(
            unique_key_query=index_type == _BY_UNIQUE_KEY,
            topic=full,
            key=key,
            max_num=most,
            begin_timestamp=begin_ms,
            end_timestamp=end_ms,
            index_type=index_type,
        )
        places = await self._places_of(full)
        answers = await self._each(places, lambda place: self._query_one(place.address, request))
        found = [message for answer in answers.values() for message in answer if message.stored_topic == full]
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
