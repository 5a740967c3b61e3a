"""ReadBackProducer: batches that the caller has encoded, to queues that he has chosen, and a look at what is stored.

Whoever sends a batch and hears nothing does not know whether it is there. Any broker can be asked: the queue itself
tells, by the ids of its messages. So nothing is ever sent again by this producer on its own; the caller looks first.
"""

from typing import Final, NamedTuple

from skyrocket.client.consumer.puller import PULL_CODES, reading
from skyrocket.client.consumer.start_position import max_offset, offset_at
from skyrocket.client.core.errors import BrokerAbsent, ClientError, NoRoute, SendFailed
from skyrocket.client.core.message import Message, ReceivedMessage, decode_messages
from skyrocket.client.core.names import wrap
from skyrocket.client.core.send_receipt import SendReceipt
from skyrocket.client.producer.producer import Producer
from skyrocket.client.sending.message_encoding import SEND_BATCH, EncodedMessage
from skyrocket.client.sending.send_number import SendNumber
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import RequestError
from skyrocket.remoting.errors import ConnectFailed, RemotingError

READER_GROUP: Final = "TOOLS_CONSUMER"  # exists on every broker
_PAGE: Final = 1024  # brokers give fewer, as their settings say
_TIMEOUT: Final = 10.0
_BATCH_PROPERTIES: Final = "WAIT\x01true\x02"
_WORTH_ANOTHER_TRY: Final = frozenset(
    int(code) for code in (ResponseCode.SYSTEM_ERROR, ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE)
)


class Page(NamedTuple):
    """Messages of a queue from some offset on, and where the next page begins."""

    messages: list[ReceivedMessage]
    next_offset: int


class ReadBackProducer(Producer):
    """Its settings should say `retries=0`: an attempt that failed is the caller's to judge."""

    reader_group = READER_GROUP  # in whose name queues are read; matters to brokers that check rights

    async def existing_queues(self, topic: str) -> list[MessageQueue]:
        """Where messages of a topic can go; raises NoRoute for a topic that no broker has, and never makes one."""
        await self._instance.route(wrap(self._namespace, topic), fresh=True)
        return await self.queues(topic)

    async def send_encoded(self, queue: MessageQueue, body: bytes, *, timeout: float) -> SendReceipt:
        """One attempt with the body of a batch (format/batch.py); the receipt's offset is the first message's."""
        topic = self._topic(queue.topic)
        out = EncodedMessage(Message(queue.topic, body), topic, body, _BATCH_PROPERTIES, "", code=SEND_BATCH)
        return await self._sender.send(out, timeout, queue._replace(topic=topic))

    async def send_alone(
        self, queue: MessageQueue, body: bytes, properties: str, number: SendNumber, unique_key: str, *, timeout: float
    ) -> SendReceipt:
        """One attempt with a message whose property text the caller has made; our brokers know its number again."""
        topic = self._topic(queue.topic)
        text = "".join(f"{name}\x01{value}\x02" for name, value in number.properties().items())
        text = f"UNIQ_KEY\x01{unique_key}\x02WAIT\x01true\x02{properties}{text}"
        out = EncodedMessage(Message(queue.topic, body), topic, body, text, unique_key, is_numbered=True)
        return await self._sender.send(out, timeout, queue._replace(topic=topic))

    async def end_of(self, queue: MessageQueue) -> int:
        """The offset of the next message."""
        return await max_offset(self._instance, queue._replace(topic=self._topic(queue.topic)))

    async def offset_at(self, queue: MessageQueue, moment_ms: int) -> int:
        """The first message stored at or after a moment."""
        return await offset_at(self._instance, queue._replace(topic=self._topic(queue.topic)), moment_ms)

    async def page(self, queue: MessageQueue, offset: int) -> Page:
        """What a queue has from an offset on, as much as the broker gives at once; raises ClientError."""
        full = queue._replace(topic=self._topic(queue.topic))
        request, address = reading(self.reader_group, full, offset, _PAGE), await self._instance.master_of(full)
        doing = f"reading back {queue} from offset {offset}"
        reply = await self._instance.ask(address, request, doing=doing, timeout=_TIMEOUT, accepted=PULL_CODES)
        found: list[ReceivedMessage] = []
        if reply.code == ResponseCode.SUCCESS:
            found = decode_messages(reply.body, queue.broker_name, queue.queue_id)
        return Page(found, reply.header.next_begin_offset)


def may_be_stored(error: Exception) -> bool:
    """Whether a broker can have the batch although the send failed."""
    if not isinstance(error, SendFailed):
        return False
    never = (ConnectFailed, BrokerAbsent, RequestError)
    return any(not isinstance(attempt.error, never) for attempt in error.attempts)


def may_go_well_later(error: Exception) -> bool:
    """Whether the same send is worth another try: the broker was away or busy, not unwilling."""
    if not isinstance(error, SendFailed):
        return isinstance(error, RemotingError) or (isinstance(error, ClientError) and _is_about_network(error))
    return error.code is None or (error.code in _WORTH_ANOTHER_TRY and "AclException" not in str(error))


def _is_about_network(error: ClientError) -> bool:
    # NoRoute: name servers forget a broker that has been away for long, and know it again when it is back.
    return isinstance(error, BrokerAbsent | NoRoute) or isinstance(error.__cause__, RemotingError)
