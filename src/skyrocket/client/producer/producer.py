"""Producer: send messages, one by one or in batches.

    async with Producer("Shop", "127.0.0.1:9876") as producer:
        receipt = await producer.send(Message("Orders", b"paid", tags="TagA"))
        receipt = await producer.send("Orders", Order("o-1001"), tags="TagA")  # a value: bodies/codecs.py
        await producer.send(Message("Orders", b"in order", sharding_key="o-1001"))

Many sends at once are many coroutines that await `send`; `max_in_flight` bounds them. With `auto_batch` messages that
come together travel together.
"""

import asyncio
import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack

from skyrocket.client.core.client_id import UNIQUE_KEYS
from skyrocket.client.core.errors import BrokerAbsent, RequestTimeout, SendFailed, SendTimeout, WrongUse
from skyrocket.client.core.hooks import prepared
from skyrocket.client.core.lifecycle import RUNNING
from skyrocket.client.core.message import (
    CLUSTER,
    CORRELATION_ID,
    MESSAGE_TYPE,
    REPLY_TO_CLIENT,
    TIME_TO_LIVE,
    Message,
    MessageFields,
    ReceivedMessage,
    property_text,
)
from skyrocket.client.core.middleware import Proceed, Sending, through
from skyrocket.client.core.send_receipt import BatchReceipt, SendReceipt, topic_and_broker
from skyrocket.client.producer.accumulator import PendingSend
from skyrocket.client.producer.batches import ELEMENT_BYTES, batch, check_together, element_of, split
from skyrocket.client.producer.choices import check_choices, check_message, check_messages
from skyrocket.client.producer.gathering import may_travel_together
from skyrocket.client.producer.producer_member import ProducerGroupMember
from skyrocket.client.sending.message_encoding import (
    SEND,
    SEND_REPLY,
    EncodedMessage,
    encoded,
    is_plain,
)
from skyrocket.client.sending.queue_selector import QueueSelector, index_by_hash
from skyrocket.client.sending.send_number import SendNumber
from skyrocket.client.sending.topic_publish_info import TopicPublishInfo
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.messaging import RecallMessage
from skyrocket.remoting.errors import ConnectFailed, RemotingError

if TYPE_CHECKING:
    from skyrocket.client.bodies.codecs import BodyCodec

_logger = logging.getLogger(__name__)

_ONEWAYS_BETWEEN_YIELDS: Final = 64


class Producer(ProducerGroupMember):
    """Sends for one producer group."""

    async def send(
        self,
        message: Message | str,
        body: Any = None,
        *,
        timeout: float | None = None,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        argument: Any = None,
        retries: int | None = None,
        codec: "BodyCodec[Any] | None" = None,
        **fields: Unpack[MessageFields],
    ) -> SendReceipt:
        """Send and wait for the broker's word; `retries` counts instead of the settings', but not in a batch.

        A message, or a topic with a value and the message's other fields: `send("Orders", order, tags="paid")`.
        A `queue`, a `selector` or the message's sharding key decides where it goes; otherwise queues take turns.
        Raises SendFailed with all attempts, TooManyInFlight, MessageRefused, NoRoute or NoNameServer.
        """
        if message.__class__ is not Message or body is not None or fields or codec is not None:
            message = _message(message, body, codec, fields)
        assert isinstance(message, Message)
        if timeout is not None or queue is not None or retries is not None:
            check_choices(timeout, queue, retries)
        if self._is_short and timeout is None and queue is None and selector is None:
            # The usual cases by the shortest way: in one request with others of the same moment.
            topic = self._known_topics.get(message.topic)
            if topic is not None and self._state is RUNNING:
                if self.settings.auto_batch:
                    if _may_wait(message):
                        if self._accumulator.is_full:
                            await self._accumulator.room()
                        return await self._accumulator.receipt(message, topic)
                elif retries is None and self._gathers and may_travel_together(message, self._rules):
                    return await self._gathering.send(message, topic)
        # Apart, as a lambda here would make a cell of every argument, for every message.
        send = self._send_through if self._around else self._send_one
        return await send(message, timeout, queue, selector, argument, retries)

    async def _send_through(
        self,
        message: Message,
        timeout: float | None,
        queue: MessageQueue | None,
        selector: QueueSelector | None,
        argument: Any,
        retries: int | None,
    ) -> SendReceipt:
        sending = Sending(self.group, [message], "send")
        receipt: SendReceipt = await self._through(
            sending, lambda: self._send_one(sending.messages[0], timeout, queue, selector, argument, retries)
        )
        return receipt

    async def _through(self, sending: Sending, innermost: Proceed) -> Any:
        return await through([each.send for each in self._around], sending, innermost)()

    async def _send_one(
        self,
        message: Message,
        timeout: float | None,
        queue: MessageQueue | None,
        selector: QueueSelector | None,
        argument: Any,
        retries: int | None,
    ) -> SendReceipt:
        topic = self._known_topics.get(message.topic) or self._topic(message.topic)
        if self._state is not RUNNING:
            self._check_running()
        settings = self.settings
        if settings.idempotent:
            return await self.send_numbered(
                message, self._numbers.next(), timeout=timeout, queue=queue, selector=selector, argument=argument
            )
        if self._preparing:
            message = prepared(self._preparing, self.group, message)
        is_free = queue is None and selector is None
        gathers = settings.gather_sends and timeout is None
        if timeout is None:
            timeout = settings.send_timeout
            if settings.auto_batch and is_free and _may_wait(message):
                if self._accumulator.is_full:
                    await self._accumulator.room()
                return await self._accumulator.receipt(message, topic)
        if is_free and retries is None and self._sender.is_plain and is_plain(message, self._rules):
            if gathers and may_travel_together(message, self._rules):
                return await self._gathering.send(message, topic)
            return await self._send_plainly(message, topic, timeout)
        out = encoded(message, topic, self._rules, self._instance.clock.now_ms())
        size = len(out.body)
        if not self._flight.try_enter(size):
            await self._flight.enter(size, timeout)
        try:
            if queue is not None or selector is not None or message.sharding_key is not None:
                queue = await self._chosen(message, topic, queue, selector, argument)
            return await self._sender.send(out, timeout, queue, retries=retries)
        finally:
            self._flight.leave(size)

    async def _send_plainly(self, message: Message, topic: str, timeout: float) -> SendReceipt:
        """The usual case by the shortest way: encoded and sent at once, and one future for the answer."""
        clock, sender = self._instance.clock, self._sender
        body, size = message.body, len(message.body)
        if not self._flight.try_enter(size):
            await self._flight.enter(size, timeout)
        try:
            now_ms = clock.now_ms()
            unique_key = UNIQUE_KEYS.next(now_ms)
            properties = property_text(message, unique_key)
            asked = sender.ask_shortly(topic, body, properties, now_ms, timeout)
            if asked is None:
                return await sender.send(EncodedMessage(message, topic, body, properties, unique_key), timeout)
            began = clock.monotonic()
            queue, answer = asked
            try:
                return sender.receipt(await answer, unique_key, queue, 1)
            except (RequestError, RemotingError) as error:
                out = EncodedMessage(message, topic, body, properties, unique_key)
                return await sender.go_on(out, timeout, queue, clock.monotonic() - began, error)
        finally:
            self._flight.leave(size)

    async def send_numbered(
        self,
        message: Message,
        number: SendNumber,
        *,
        unique_key: str | None = None,
        timeout: float | None = None,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> SendReceipt:
        """`send` for who keeps the numbers himself: the same number and queue mean the same message.

        All attempts go to one queue, as no other broker could tell a repetition. With a `unique_key` and no queue,
        selector or sharding key the key decides, so that a later call with the same key finds the same queue.
        """
        topic = self._usable(message.topic)
        if self._preparing:
            message = prepared(self._preparing, self.group, message)
        seconds = self.settings.send_timeout if timeout is None else timeout
        out = encoded(message, topic, self._rules, self._instance.clock.now_ms(), number.properties(), unique_key)
        out.is_numbered = True
        size = len(out.body)
        await self._flight.enter(size, seconds)
        try:
            if queue is not None or selector is not None or message.sharding_key is not None:
                chosen = await self._chosen(message, topic, queue, selector, argument)
                return await self._sender.send(out, seconds, chosen)
            info = self._sender.topics.get(topic) or await self._sender.publish_info(topic)
            if unique_key is not None:
                chosen = info.queues[index_by_hash(unique_key, len(info.queues))]
                return await self._sender.send(out, seconds, chosen)
            return await self._send_where_reachable(out, seconds, info)
        finally:
            self._flight.leave(size)

    async def _send_where_reachable(self, out: EncodedMessage, seconds: float, info: TopicPublishInfo) -> SendReceipt:
        """To one queue; to one of another broker only if the first was never reached, so that it cannot have it."""
        began = self._instance.clock.monotonic()
        chosen = info.queues[info.next()]
        try:
            return await self._sender.send(out, seconds, chosen)
        except SendFailed as error:
            left = seconds - (self._instance.clock.monotonic() - began)
            other = info.queues[info.other_than(chosen.broker_name)]
            never_sent = all(isinstance(each.error, ConnectFailed | BrokerAbsent) for each in error.attempts)
            if not never_sent or other.broker_name == chosen.broker_name or left <= 0:
                raise
            return await self._sender.send(out, left, other)

    async def _send_special(
        self, message: Message, extra: dict[str, str], timeout: float, *, sys_flag: int = 0, code: int = SEND
    ) -> SendReceipt:
        """A message with properties that applications may not set themselves."""
        topic = self._usable(message.topic)
        if self._preparing:
            message = prepared(self._preparing, self.group, message)
        out = encoded(message, topic, self._rules, self._instance.clock.now_ms(), extra)
        out.sys_flag |= sys_flag
        out.code = code
        size = len(out.body)
        await self._flight.enter(size, timeout)
        try:
            queue = None
            if message.sharding_key is not None:
                queue = await self._chosen(message, topic, None, None, None)
            return await self._sender.send(out, timeout, queue)
        finally:
            self._flight.leave(size)

    async def request(self, message: Message, *, timeout: float = 3.0) -> ReceivedMessage:
        """Send a message and wait for the reply of whoever consumes it; raises SendFailed or RequestTimeout."""
        check_message("request", message)
        check_choices(timeout, None, None)
        if self._around:
            sending = Sending(self.group, [message], "request")
            reply: ReceivedMessage = await self._through(sending, lambda: self._request(sending.messages[0], timeout))
            return reply
        return await self._request(message, timeout)

    async def _request(self, message: Message, timeout: float) -> ReceivedMessage:
        topic = self._usable(message.topic)
        began = self._instance.clock.monotonic()
        info = await self._sender.publish_info(topic)
        # The reply comes over a connection that has named this client.
        if topic in self._instance.routes:
            await self._instance.introduce(topic)
        else:  # this message makes the topic
            await self._instance.introduce_to({queue.broker_name for queue in info.queues})
        correlation = os.urandom(16).hex()
        waiting = self._instance.replies[correlation] = asyncio.get_running_loop().create_future()
        extra = {
            CORRELATION_ID: correlation,
            REPLY_TO_CLIENT: self._instance.client_id,
            TIME_TO_LIVE: str(round(timeout * 1000)),
        }
        try:
            await self._send_special(message, extra, timeout)
            left = timeout - (self._instance.clock.monotonic() - began)
            return await asyncio.wait_for(waiting, max(left, 0.0))
        except TimeoutError as error:
            if isinstance(error, SendTimeout):
                raise
            raise RequestTimeout(message.topic, timeout) from None
        finally:
            self._instance.replies.pop(correlation, None)

    async def reply(self, request: ReceivedMessage, body: bytes, *, timeout: float | None = None) -> SendReceipt:
        """Answer a message that was sent with `request`; raises WrongUse for any other."""
        asked = request.properties
        cluster, correlation = asked.get(CLUSTER), asked.get(CORRELATION_ID)
        if cluster is None or correlation is None:
            raise WrongUse(f"{request!r} asks for no reply: it was not sent with Producer.request")
        extra = {
            MESSAGE_TYPE: "reply",
            CORRELATION_ID: correlation,
            REPLY_TO_CLIENT: asked.get(REPLY_TO_CLIENT, ""),
            TIME_TO_LIVE: asked.get(TIME_TO_LIVE, "3000"),
        }
        message = Message(f"{cluster}_REPLY_TOPIC", body)
        seconds = self.settings.send_timeout if timeout is None else timeout
        return await self._send_special(message, extra, seconds, code=SEND_REPLY)

    async def recall(self, topic: str, recall_handle: str) -> str:
        """Take back a message that waits for its time, with the handle of its receipt; returns the message's id."""
        full = self._usable(topic)
        _, broker_name = topic_and_broker(recall_handle)
        request = RecallMessage(
            topic=full, recall_handle=recall_handle, producer_group=self.group, broker_name=broker_name
        )
        address = await self._instance.master_of(MessageQueue(full, broker_name, 0))
        doing = f"recalling a message of topic {topic}"
        reply = await self._instance.ask(address, request, doing=doing, timeout=self.settings.send_timeout)
        message_id = reply.header.msg_id or ""
        if self._tracer is not None:
            self._tracer.recalled(topic, message_id, reply.header.region)
        return message_id

    async def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> None:
        """Send and never know: no answer, no retry. Raises SendFailed when it could not even leave."""
        if message.__class__ is not Message or queue is not None:
            check_message("send_oneway", message)
            check_choices(None, queue, None)
        if self._around:
            sending = Sending(self.group, [message], "send_oneway")
            await self._through(sending, lambda: self._send_oneway(sending.messages[0], queue, selector, argument))
        else:
            await self._send_oneway(message, queue, selector, argument)

    async def _send_oneway(
        self, message: Message, queue: MessageQueue | None, selector: QueueSelector | None, argument: Any
    ) -> None:
        topic = self._usable(message.topic)
        if self._preparing:
            message = prepared(self._preparing, self.group, message)
        if queue is not None or selector is not None or message.sharding_key is not None:
            queue = await self._chosen(message, topic, queue, selector, argument)
        out = encoded(message, topic, self._rules, self._instance.clock.now_ms())
        await self._sender.send_oneway(out, self.settings.send_timeout, queue)
        self._oneways += 1
        if self._oneways % _ONEWAYS_BETWEEN_YIELDS == 0:
            await asyncio.sleep(0)  # what is never awaited would pile up in memory

    async def send_batch(
        self, messages: Sequence[Message], *, timeout: float | None = None, queue: MessageQueue | None = None
    ) -> list[SendReceipt]:
        """Messages of one topic in as few requests as `max_batch_bytes` allows; a receipt for each, in order.

        Each part is sent after the one before it was confirmed; a part that fails raises, the earlier ones stay sent.
        """
        check_messages("send_batch", messages)
        check_choices(timeout, queue, None)
        if not messages:
            return []
        if self._around:
            sending = Sending(self.group, messages, "send_batch")
            receipts: list[SendReceipt] = await self._through(
                sending, lambda: self._send_batch(sending.messages, timeout, queue)
            )
            return receipts
        return await self._send_batch(messages, timeout, queue)

    async def _send_batch(
        self, messages: Sequence[Message], timeout: float | None, queue: MessageQueue | None
    ) -> list[SendReceipt]:
        topic = self._usable(messages[0].topic)
        check_together(messages)
        if self._preparing:
            messages = [prepared(self._preparing, self.group, message) for message in messages]
        elements = [element_of(message, self._rules) for message in messages]
        sizes = [len(body) + len(tail) + ELEMENT_BYTES for body, tail, _ in elements]
        receipts: list[SendReceipt] = []
        wanted = None if queue is None else await self._chosen(messages[0], topic, queue, None, None)
        most = min(self.settings.max_batch_bytes, self.settings.max_message_size)
        for run in split(sizes, most):
            now_ms = self._instance.clock.now_ms()
            keys = UNIQUE_KEYS.series(len(run), now_ms)
            out = batch(messages[run.start], topic, elements[run.start : run.stop], keys, now_ms)
            out.members = messages[run.start : run.stop]
            receipts += await self._send_part(out, timeout or self.settings.send_timeout, wanted)
        return receipts

    async def _send_part(self, out: EncodedMessage, timeout: float, queue: MessageQueue | None) -> list[SendReceipt]:
        size = len(out.body)
        await self._flight.enter(size, timeout)
        try:
            whole = await self._sender.send(out, timeout, queue)
        finally:
            self._flight.leave(size)
        return list(map(BatchReceipt(whole, out.unique_keys).member, range(len(out.unique_keys))))

    async def enqueue(self, message: Message) -> PendingSend:
        """Put a message into the batch that is being filled and go on; await what is returned for the receipt.

        Waits only when `auto_batch_total_bytes` are under way. The quickest way to send many small messages.
        """
        if message.__class__ is not Message:
            check_message("enqueue", message)
        topic = self._usable(message.topic)
        if self._accumulator.is_full:
            await self._accumulator.room()
        if self._preparing:
            message = prepared(self._preparing, self.group, message)
        return self._accumulator.add(message, topic)

    async def flush(self) -> None:
        """Let batches leave that are being filled."""
        self._check_running()
        self._accumulator.flush()

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The queues that messages of a topic can go to; raises NoRoute or NoNameServer."""
        info = await self._sender.publish_info(self._usable(topic))
        return [queue._replace(topic=topic) for queue in info.queues]


def _message(given: Any, body: Any, codec: "BodyCodec[Any] | None", fields: MessageFields) -> Message:
    if isinstance(given, Message):
        if body is not None or fields or codec is not None:
            raise WrongUse("send takes a Message, or a topic with a body and the other fields, not both")
        return given
    if not isinstance(given, str):
        raise WrongUse(
            f"send({given!r}) names no topic: give a Message, or the topic before the value, as "
            f"send('Orders', {type(given).__name__}(…))"
        )
    if body is None:
        raise WrongUse(f"send({given!r}) has no body: give a value, or a Message")
    return Message.of(given, body, codec, **fields)


def _may_wait(message: Message) -> bool:
    return (
        message.sharding_key is None
        and not message.delay_level
        and message.delay is None
        and message.deliver_at is None
        and message.priority is None
    )
