"""Sends what a set without master delivers to masters of other sets, and reads what they ask for.

    plain messages, halves       the next queue of the topic
    check points of pop          always the queue that follows from this set's name and the old queue: a check point and
                                 its acknowledgements must meet
    timers that roll             by key: a timer and its cancel must meet

A message counts as put when the other master has stored it, whether or not its slaves have it. All other answers and
all silence mean: not taken, try again. What was stored there although its answer was lost comes twice, as any retry.
"""

import asyncio
import itertools
import logging
from collections.abc import Sequence
from typing import Final

from skyrocket.broker.acting.escaped_message import escaped
from skyrocket.broker.acting.masters import Masters, RemoteQueue
from skyrocket.broker.rules.special_services import Unreachable
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.system_topics import revive_topic
from skyrocket.clock import Clock, Seldom
from skyrocket.format.java_hash import unsigned_hash
from skyrocket.format.properties import find_property
from skyrocket.format.property_bytes import PRODUCER_GROUP, TIMER_DELETE_UNIQUE_KEY, UNIQUE_KEY
from skyrocket.model.topic import TIMER_TOPIC
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.messaging import SendMessageV2
from skyrocket.protocol.requests.pulling import WITH_SUBSCRIPTION, PullMessage
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.results import Durability, PutResult, PutStatus

_logger = logging.getLogger(__name__)

SEND_SECONDS: Final = 3.0  # as RocketMQ
FETCH_SECONDS: Final = 3.0
_AT_ONCE: Final = 64  # sends of a group on their way
_TEMPLATE: Final = "TBW102"
_TEMPLATE_QUEUES: Final = 8
_STORED: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
    }
)
_PULLED: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    }
)
_TAKEN: Final = PutResult(PutStatus.PUT_OK, -1, -1, 0, 0, Durability.MEMORY, 0)


class Escape:
    """The other sets of the cluster, to the services of this one (`rules.special_services.OtherBrokers`)."""

    def __init__(
        self,
        client: RemotingClient,
        masters: Masters,
        identity: BrokerIdentity,
        clock: Clock,
        *,
        is_allowed: bool,
    ) -> None:
        self._client = client
        self._masters = masters
        self._revive_topic = revive_topic(identity.cluster_name)
        self._own_name = identity.broker_name
        self._group = f"InnerProducerGroup_{identity.broker_name}_{identity.broker_id}"
        self._reader_group = f"InnerConsumerGroup_{identity.broker_name}_{identity.broker_id}"
        self._is_allowed = is_allowed  # enableRemoteEscape
        self._turns = itertools.count()
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._seldom = Seldom(clock)
        self.sent = 0  # since the start
        self.not_taken = 0

    async def put_group(self, messages: Sequence[PutMessage]) -> Sequence[PutResult]:
        """Send all; each is taken or SERVICE_NOT_AVAILABLE."""
        results = await asyncio.gather(*(self._put(message) for message in messages))
        taken = sum(result.ok for result in results)
        self.sent += taken
        self.not_taken += len(results) - taken
        return results

    async def _put(self, message: PutMessage) -> PutResult:
        async with self._at_once:
            trouble = await self._trouble_of_sending(message)
        if trouble is None:
            return _TAKEN
        if self._seldom.may_say(message.topic):
            _logger.warning(
                "a message is taken by no other master, it waits topic=%s reason=%s", message.topic, trouble
            )
        return PutResult(PutStatus.SERVICE_NOT_AVAILABLE, -1, -1, 0, 0, Durability.NONE, 0, trouble)

    async def _trouble_of_sending(self, message: PutMessage) -> str | None:
        """Send one; why it was not taken."""
        if not self._is_allowed:
            return "enableRemoteEscape is false"
        sent = escaped(message)
        queues = await self._masters.queues(sent.topic)
        if not queues:
            return "no master of another set has the topic"
        queue = queues[self._choice(message) % len(queues)]
        try:
            request = self._request(sent, queue)
            await self._client.call(queue.address, request, sent.body, timeout_seconds=SEND_SECONDS, accepted=_STORED)
        except (RemotingError, RequestError) as error:
            self._masters.doubt(queue.address)
            return str(error)
        return None

    def _choice(self, message: PutMessage) -> int:
        if message.topic == self._revive_topic:
            return unsigned_hash(self._revive_topic + self._own_name) + message.queue_id
        if message.topic == TIMER_TOPIC:
            key = find_property(message.properties, TIMER_DELETE_UNIQUE_KEY)
            key = key or find_property(message.properties, UNIQUE_KEY) or b""
            return unsigned_hash(key.decode("utf-8", "replace"))
        return next(self._turns)

    def _request(self, message: PutMessage, queue: RemoteQueue) -> SendMessageV2:
        group = find_property(message.properties, PRODUCER_GROUP) or b""
        return SendMessageV2(
            producer_group=group.decode("utf-8", "replace") or self._group,
            topic=message.topic,
            default_topic=_TEMPLATE,
            default_topic_queue_nums=_TEMPLATE_QUEUES,
            queue_id=queue.queue_id,
            sys_flag=message.sys_flag,
            born_timestamp=message.born_timestamp,
            flag=message.flag,
            properties=message.properties.decode("utf-8", "surrogateescape"),
            reconsume_times=message.reconsume_times,
            broker_name=queue.broker_name,
        )

    async def fetch(self, broker_name: str, topic: str, queue_id: int, offset: int) -> bytes | None:
        """The record at a place of another set, None when it is gone; raises Unreachable."""
        address = await self._masters.address_of(broker_name, topic)
        if address is None:
            raise Unreachable(f"no broker {broker_name} is known")
        request = PullMessage(
            consumer_group=self._reader_group,
            topic=topic,
            queue_id=queue_id,
            queue_offset=offset,
            max_msg_nums=1,
            sys_flag=WITH_SUBSCRIPTION,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            expression_type="TAG",
            broker_name=broker_name,
        )
        try:
            reply = await self._client.call(address, request, timeout_seconds=FETCH_SECONDS, accepted=_PULLED)
        except (RemotingError, RequestError) as error:
            self._masters.doubt(address)
            raise Unreachable(str(error)) from error
        return bytes(reply.body) or None
