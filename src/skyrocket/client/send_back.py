"""Messages that could not be consumed go back: to the broker that has them, else to the retry topic as new messages.

The broker chooses the delay and, after too many times, the dead-letter topic.
"""

import logging
from typing import Final

from skyrocket.client.errors import ClientError
from skyrocket.client.instance import ClientInstance
from skyrocket.client.message import MAX_RECONSUME_TIMES, ORIGIN_MESSAGE_ID, RECONSUME_TIME, Message, ReceivedMessage
from skyrocket.client.names import INNER_PRODUCER_GROUP, retry_topic, wrap
from skyrocket.client.outgoing import Outgoing
from skyrocket.client.sender import Sender, SendRules
from skyrocket.format.properties import encode_properties
from skyrocket.model import property_names as names
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.requests.messaging import ConsumerSendMsgBack
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

DEFAULT_MAX_TIMES: Final = 16
_FIRST_RETRY_LEVEL: Final = 3
_TIMEOUT: Final = 5.0


class SendBack:
    """For one consumer group."""

    def __init__(self, instance: ClientInstance, group: str, max_times: int) -> None:
        self._instance = instance
        self._group = group
        self._max_times = DEFAULT_MAX_TIMES if max_times < 0 else max_times
        self._sender = Sender(instance, INNER_PRODUCER_GROUP, SendRules())

    async def send(self, message: ReceivedMessage, delay_level: int) -> bool:
        """Give a message back; whether it is safe now."""
        try:
            await self._to_broker(message, delay_level)
            return True
        except (ClientError, RemotingError) as error:
            _logger.info("a message was not taken back message=%s reason=%s", message.message_id, error)
        return await self.resend(message)

    async def _to_broker(self, message: ReceivedMessage, delay_level: int) -> None:
        queue = MessageQueue(message.stored_topic, message.broker_name, message.queue_id)
        request = ConsumerSendMsgBack(
            broker_name=message.broker_name,
            offset=message.physical_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.message_id,
            origin_topic=wrap(self._instance.namespace, message.topic),
            max_reconsume_times=self._max_times,
        )
        address = await self._instance.master_of(queue)
        await self._instance.ask(address, request, doing=f"giving {message.message_id} back", timeout=_TIMEOUT)

    async def resend(self, message: ReceivedMessage) -> bool:
        """As a new message to the retry topic: the delay is ours to choose then, the dead-letter topic still theirs."""
        times = message.reconsume_times
        properties = dict(message.properties)
        for name in (names.TRANSACTION_PREPARED, "MIN_OFFSET", "MAX_OFFSET"):
            properties.pop(name, None)
        properties.setdefault(ORIGIN_MESSAGE_ID, message.message_id)
        properties[names.RETRY_TOPIC] = wrap(self._instance.namespace, message.topic)
        properties[RECONSUME_TIME] = str(times + 1)
        properties[MAX_RECONSUME_TIMES] = str(self._max_times)
        properties[names.DELAY_LEVEL] = str(_FIRST_RETRY_LEVEL + times)
        topic = retry_topic(self._group)
        out = Outgoing(
            Message(topic, message.body),
            topic,
            message.body,
            encode_properties(properties).decode(),
            properties.get(names.UNIQUE_KEY, ""),
            message.flag,
            reconsume_times=times + 1,
            max_reconsume_times=self._max_times,
        )
        try:
            await self._sender.send(out, _TIMEOUT)
        except (ClientError, RemotingError) as error:
            _logger.warning(
                "a message could not be sent to its retry topic message=%s reason=%s", out.unique_key, error
            )
            return False
        return True
