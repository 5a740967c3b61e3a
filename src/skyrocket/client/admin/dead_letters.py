"""The dead letters of a group: read them, and let the group have them again.

A log only grows: what is sent again stays among the dead letters. Choose by time, key, id or error what to send.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final

from skyrocket.client.admin.group_admin import GroupAdmin
from skyrocket.client.admin.oldest_first import begun_together, oldest_first
from skyrocket.client.admin.places import BrokerPlace
from skyrocket.client.consumer.dead_letter_cause import CAUSE_PROPERTIES, cause_of
from skyrocket.client.consumer.puller import PULL_CODES, reading
from skyrocket.client.consumer.start_position import max_offset, min_offset
from skyrocket.client.core.errors import BrokerRefused, ClientError, NoRoute, NotFound, WrongUse
from skyrocket.client.core.message import MAX_RECONSUME_TIMES, RECONSUME_TIME, Message, ReceivedMessage, decode_messages
from skyrocket.client.core.names import INNER_PRODUCER_GROUP, retry_topic, unwrap
from skyrocket.client.core.send_receipt import SendReceipt
from skyrocket.client.sending.message_encoding import EncodedMessage
from skyrocket.client.sending.retrying_sender import RetryingSender, SendRules
from skyrocket.format.message_id import parse_offset_message_id
from skyrocket.format.properties import encode_properties
from skyrocket.model import property_names as names
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.property_names import SEND_PRODUCER_ID, SEND_SEQUENCE
from skyrocket.model.topic import DLQ_PREFIX
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.query import ViewMessageById

_BATCH: Final = 32
# What belongs to the life that has ended: a message that comes again begins anew.
_ENDED: Final = (
    *CAUSE_PROPERTIES,
    names.DELAY_LEVEL,
    names.TIMER_DELAY_SEC,
    names.TIMER_DELAY_MS,
    names.TIMER_DELIVER_MS,
    names.TRANSACTION_PREPARED,
    names.RECORD_CRC,
    RECONSUME_TIME,
    MAX_RECONSUME_TIMES,
    SEND_PRODUCER_ID,
    SEND_SEQUENCE,
    "MIN_OFFSET",
    "MAX_OFFSET",
)


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Which dead letters; what is not given does not matter."""

    since: datetime | None = None  # they died
    until: datetime | None = None
    key: str | None = None
    error: str | None = None  # a part of the type of the exception, as our consumers write it down
    message_ids: frozenset[str] = frozenset()
    where: Callable[[ReceivedMessage], bool] | None = None

    def takes(self, message: ReceivedMessage) -> bool:
        """Whether it is one of them."""
        died = message.store_timestamp / 1000
        cause = cause_of(message) if self.error is not None else None
        return (
            (self.since is None or died >= self.since.timestamp())
            and (self.until is None or died < self.until.timestamp())
            and (self.key is None or self.key in message.keys)
            and (self.error is None or (cause is not None and self.error in cause.error_type))
            and (not self.message_ids or not self.message_ids.isdisjoint(_ids(message)))
            and (self.where is None or self.where(message))
        )


def _ids(message: ReceivedMessage) -> tuple[str, str]:
    return message.message_id, message.offset_message_id


ALL_DEAD_LETTERS: Final = DeadLetterFilter()


class DeadLetterAdmin(GroupAdmin):
    """Operations on the dead letters of groups."""

    async def dead_letters(
        self,
        group: str,
        wanted: DeadLetterFilter = ALL_DEAD_LETTERS,
        *,
        most: int = 1000,
        newest: bool = False,
    ) -> list[ReceivedMessage]:
        """What a group has given up, oldest first; `cause_of` tells why.

        Of more than `most` the oldest, or the `newest`. Raises NotFound for an unknown group.
        """
        full = self._full(group)
        queues = await self._dead_letter_queues(full)
        take = self._last_of if newest else self._first_of

        async def at(place: BrokerPlace) -> list[ReceivedMessage]:
            found: list[ReceivedMessage] = []
            for queue in queues:
                if queue.broker_name == place.broker_name:
                    found += await take(full, queue, wanted, most)
            return found

        answers = await self._each(await self._places_of(DLQ_PREFIX + full), at) if queues else {}
        found = sorted(chain.from_iterable(answers.values()), key=lambda message: message.store_timestamp)
        return found[max(len(found) - most, 0) :] if newest else found[:most]

    async def each_dead_letter(
        self, group: str, wanted: DeadLetterFilter = ALL_DEAD_LETTERS
    ) -> AsyncGenerator[ReceivedMessage, None]:
        """All of them, oldest first, one by one: a batch of each queue is held, however many there are.

        Raises what the first broker that fails does, for a tolerant admin as well.
        """
        full = self._full(group)
        readers = [self._chosen_of(full, queue, wanted) for queue in await self._dead_letter_queues(full)]
        try:
            async for message in oldest_first(await begun_together(readers)):
                yield message
        finally:
            for reader in readers:
                await reader.aclose()

    async def _chosen_of(
        self, group: str, queue: MessageQueue, wanted: DeadLetterFilter
    ) -> AsyncGenerator[ReceivedMessage, None]:
        begin, end = await self._ends_of(queue)
        async for message in self._dead_letters_of(group, queue, begin, end):
            if wanted.takes(message):
                yield message

    async def _first_of(
        self, group: str, queue: MessageQueue, wanted: DeadLetterFilter, most: int
    ) -> list[ReceivedMessage]:
        found: list[ReceivedMessage] = []
        async for message in self._chosen_of(group, queue, wanted):
            found.append(message)
            if len(found) >= most:
                break
        return found

    async def _last_of(
        self, group: str, queue: MessageQueue, wanted: DeadLetterFilter, most: int
    ) -> list[ReceivedMessage]:
        """From the end backwards, as far as is needed."""
        first, end = await self._ends_of(queue)
        found: list[ReceivedMessage] = []
        while end > first and len(found) < most:
            begin = max(first, end - max(most, _BATCH))
            reading_on = self._dead_letters_of(group, queue, begin, end)
            found = [*[message async for message in reading_on if wanted.takes(message)], *found]
            end = begin
        return found[max(len(found) - most, 0) :]

    async def _ends_of(self, queue: MessageQueue) -> tuple[int, int]:
        instance = self._instance
        first = await self._ask_master(queue, lambda seconds: min_offset(instance, queue, timeout=seconds))
        return first, await self._ask_master(queue, lambda seconds: max_offset(instance, queue, timeout=seconds))

    async def _dead_letter_queues(self, group: str) -> list[MessageQueue]:
        instance = self._instance_of()
        try:
            route = await instance.route(DLQ_PREFIX + group, fresh=True)
        except NoRoute:
            try:
                await instance.route(retry_topic(group), fresh=True)
            except NoRoute as error:
                if not any(unwrap(self._namespace, group) in table for table in (await self.group_table()).values()):
                    raise NotFound(
                        "no broker has dead letters or retries of group {group}: check its name and the namespace",
                        group=group,
                    ) from error
            return []  # it has failed at nothing so far
        return sorted(set(route.read_queues) | set(route.write_queues))

    async def _dead_letters_of(
        self, group: str, queue: MessageQueue, offset: int, end: int
    ) -> AsyncIterator[ReceivedMessage]:
        instance = self._instance
        while offset < end:
            reply = await self._ask(
                await instance.master_of(queue),
                reading(group, queue, offset, min(_BATCH, end - offset)),
                doing=f"reading the dead letters of group {group}",
                accepted=PULL_CODES,
            )
            if reply.code == ResponseCode.SUCCESS:
                for message in decode_messages(reply.body, queue.broker_name, queue.queue_id):
                    origin = message.properties.get(names.RETRY_TOPIC, message.stored_topic)
                    message.topic = unwrap(instance.namespace, origin)
                    yield message
            if reply.header.next_begin_offset <= offset:
                return
            offset = reply.header.next_begin_offset

    async def resend_dead_letters(
        self,
        group: str,
        wanted: DeadLetterFilter = ALL_DEAD_LETTERS,
        *,
        most: int = 1000,
        to_topic: bool = False,
        rate: float = 0.0,
        told: Callable[[int], object] | None = None,
    ) -> list[SendReceipt]:
        """Let the group have dead letters again, with all attempts before them; `to_topic`: let all groups.

        They stay among the dead letters: a second call sends them a second time. `rate` is messages per second, 0 for
        no limit; `told` hears how many were sent so far. Raises WrongUse when the group consumes in order: its brokers
        make each retry a dead letter at once.
        """
        full = self._full(group)
        messages = await self.dead_letters(group, wanted, most=most)
        sender = RetryingSender(self._instance, INNER_PRODUCER_GROUP, SendRules())
        receipts: list[SendReceipt] = []
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number, message in enumerate(messages):
            if rate:
                await asyncio.sleep(max(began + number / rate - loop.time(), 0))
            receipts.append(await sender.send(_again(full, message, to_topic=to_topic), self._timeout))
            if len(receipts) == 1 and not to_topic:
                await self._check_alive(full, receipts[0])
            if told is not None:
                told(len(receipts))
        return receipts

    async def purge_dead_letters(self, group: str) -> int:
        """Delete all dead letters of a group, for ever; how many there were. Raises NotFound for an unknown group."""
        queues = await self._dead_letter_queues(self._full(group))
        kept = 0
        for queue in queues:
            begin, end = await self._ends_of(queue)
            kept += end - begin
        if queues:
            await self.delete_topic(DLQ_PREFIX + group)  # brokers make it again for the next one
        return kept

    async def _check_alive(self, group: str, receipt: SendReceipt) -> None:
        position = parse_offset_message_id(receipt.offset_message_id)
        request = ViewMessageById(offset=position.physical_offset, topic=DLQ_PREFIX + group)
        address = await self._instance.master_of(receipt.queue._replace(topic=retry_topic(group)))
        try:
            reply = await self._ask(address, request, doing="looking where it went")
        except BrokerRefused as error:
            if error.code == ResponseCode.NO_PERMISSION and "not match" in (error.remark or ""):
                return  # RocketMQ 5.5: a message is shown under its own topic alone, so this one is not a dead letter
            raise
        (stored,) = decode_messages(reply.body, receipt.queue.broker_name)
        if stored.stored_topic.startswith(DLQ_PREFIX):
            raise WrongUse(
                "group {group} consumes in order, so what was sent to it became a dead letter again at once: "
                "send to the topics instead (to_topic=True, --to-topic), which all their groups will see",
                group=group,
            )


def _again(group: str, message: ReceivedMessage, *, to_topic: bool) -> EncodedMessage:
    properties = {name: value for name, value in message.properties.items() if name not in _ENDED}
    origin = properties.get(names.RETRY_TOPIC)
    if to_topic:
        if origin is None:
            raise ClientError(
                "{message!r} does not say which topic it came from: leave it out of the choice", message=message
            )
        del properties[names.RETRY_TOPIC]
    topic = origin if to_topic and origin is not None else retry_topic(group)
    return EncodedMessage(
        Message(topic, message.body),
        topic,
        message.body,
        encode_properties(properties).decode(),
        properties.get(names.UNIQUE_KEY, ""),
        message.flag,
    )
