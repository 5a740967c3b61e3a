"""Messages that could not be consumed go back: to the broker that has them, else to the retry topic as new messages.

The broker chooses the delay. After too many times a message goes to the dead-letter topic: as a new message, because
only then it can bring its cause along (dead_letter_cause.py).
"""

import logging
import socket
from typing import Final

from skyrocket.client.consumer.dead_letter_cause import FailedAttempts, cause_properties
from skyrocket.client.consumer.handlers import TO_DEAD_LETTERS, Outcome
from skyrocket.client.consumer.retry_policy import FIRST_RETRY_LEVEL
from skyrocket.client.core.errors import ClientError
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.message import (
    MAX_RECONSUME_TIMES,
    RECONSUME_TIME,
    Message,
    ReceivedMessage,
)
from skyrocket.client.core.names import INNER_PRODUCER_GROUP, retry_topic, wrap
from skyrocket.client.sending.message_encoding import EncodedMessage
from skyrocket.client.sending.retrying_sender import RetryingSender, SendRules
from skyrocket.errors import SkyrocketError
from skyrocket.format.properties import encode_properties
from skyrocket.model import property_names as names
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.property_names import SEND_PRODUCER_ID, SEND_SEQUENCE
from skyrocket.protocol.requests.messaging import ConsumerSendMsgBack
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

DEFAULT_MAX_TIMES: Final = 16
_TIMEOUT: Final = 5.0
# A dead letter waits for nothing, and is not the message that its producer numbered.
_OF_EARLIER_SENDS: Final = (
    names.DELAY_LEVEL,
    names.TIMER_DELAY_SEC,
    names.TIMER_DELAY_MS,
    names.TIMER_DELIVER_MS,
    SEND_PRODUCER_ID,
    SEND_SEQUENCE,
)


class SendBack:
    """For one consumer group."""

    def __init__(self, instance: ClientInstance, group: str, max_times: int) -> None:
        self._instance = instance
        self._group = group
        self._max_times = DEFAULT_MAX_TIMES if max_times < 0 else max_times
        # Name servers may not know the retry topic yet; then the first queue is the one that it surely has.
        self._sender = RetryingSender(instance, INNER_PRODUCER_GROUP, SendRules(template_queues=1))
        self._attempts = FailedAttempts(f"{socket.gethostname()} {instance.client_id}")

    def most(self, outcome: Outcome) -> int:
        """How often a message may come again after this outcome."""
        return self._max_times if outcome.retries is None else outcome.retries

    def is_last(self, message: ReceivedMessage, outcome: Outcome) -> bool:
        """Whether the message will be a dead letter."""
        return outcome.delay_level < 0 or message.reconsume_times >= self.most(outcome)

    async def send(self, message: ReceivedMessage, outcome: Outcome) -> bool:
        """Give a message back after a call that failed; whether it is safe now."""
        self.note(message, outcome.cause)
        if self.is_last(message, outcome):
            return await self.give_up(message, outcome.cause)
        return await self._return(message, outcome.delay_level, self.most(outcome))

    def note(self, message: ReceivedMessage, cause: Exception | None) -> None:
        """Remember an attempt, should the message become a dead letter here."""
        self._attempts.add(message, cause, self._instance.clock.now_ms())

    async def give_up(self, message: ReceivedMessage, cause: Exception | None) -> bool:
        """To the dead letters, with what is known; without it if that is the only way. Whether it is safe now."""
        is_safe = await self._bury(message, cause) or await self._return(message, TO_DEAD_LETTERS, self._max_times)
        if is_safe:
            self._attempts.forget(message)
        return is_safe

    async def _return(self, message: ReceivedMessage, delay_level: int, most: int) -> bool:
        try:
            await self._to_broker(message, delay_level, most)
            return True
        except (ClientError, RemotingError) as error:
            _logger.info("a message was not taken back message=%s reason=%s", message.message_id, error)
        return await self.resend(message, delay_level, most)

    async def _to_broker(self, message: ReceivedMessage, delay_level: int, most: int) -> None:
        queue = MessageQueue(message.stored_topic, message.broker_name, message.queue_id)
        request = ConsumerSendMsgBack(
            broker_name=message.broker_name,
            offset=message.physical_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.message_id,
            origin_topic=wrap(self._instance.namespace, message.topic),
            max_reconsume_times=most,
        )
        address = await self._instance.master_of(queue)
        await self._instance.ask(address, request, doing=f"giving {message.message_id} back", timeout=_TIMEOUT)

    async def resend(self, message: ReceivedMessage, delay_level: int = 0, most: int | None = None) -> bool:
        """As a new message to the retry topic: the delay is ours to choose then, the dead-letter topic still theirs."""
        most = self._max_times if most is None else most
        properties = self._properties(message)
        properties[MAX_RECONSUME_TIMES] = str(most)
        level = delay_level if delay_level > 0 else FIRST_RETRY_LEVEL + message.reconsume_times
        properties[names.DELAY_LEVEL] = str(level)
        return await self._send_anew(message, properties, most)

    async def _bury(self, message: ReceivedMessage, cause: Exception | None) -> bool:
        """To the retry topic, tried more often than allowed: brokers make that a dead letter, with our properties.

        A message that is only given back keeps the properties it has.
        """
        properties = self._properties(message)
        for name in _OF_EARLIER_SENDS:
            properties.pop(name, None)
        most = min(self._max_times, message.reconsume_times)
        properties[MAX_RECONSUME_TIMES] = str(most)
        used = sum(len(name.encode()) + len(value.encode()) + 2 for name, value in properties.items())
        attempts = self._attempts.of(message)
        properties.update(cause_properties(cause, self._attempts.host, attempts, used))
        return await self._send_anew(message, properties, most)

    def _properties(self, message: ReceivedMessage) -> dict[str, str]:
        properties = dict(message.properties)
        for name in (names.TRANSACTION_PREPARED, "MIN_OFFSET", "MAX_OFFSET"):
            properties.pop(name, None)
        properties.setdefault(names.ORIGIN_MESSAGE_ID, message.message_id)
        properties[names.RETRY_TOPIC] = wrap(self._instance.namespace, message.topic)
        properties[RECONSUME_TIME] = str(message.reconsume_times + 1)
        return properties

    async def _send_anew(self, message: ReceivedMessage, properties: dict[str, str], most_times: int) -> bool:
        topic = retry_topic(self._group)
        try:
            out = EncodedMessage(
                Message(topic, message.body),
                topic,
                message.body,
                encode_properties(properties).decode(),
                properties.get(names.UNIQUE_KEY, ""),
                message.flag,
                reconsume_times=message.reconsume_times + 1,
                max_reconsume_times=most_times,
            )
            await self._sender.send(out, _TIMEOUT)
        except SkyrocketError as error:
            _logger.warning(
                "a message could not be sent to its retry topic message=%s reason=%s", message.message_id, error
            )
            return False
        return True
