"""What brokers ask their clients, on the connections that the clients opened."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from skyrocket.client.core.errors import ClientError
from skyrocket.client.core.members import ConsumerMember, ProducerMember, TransactionCheck
from skyrocket.client.core.message import CORRELATION_ID, ReceivedMessage, decode_messages, reply_message
from skyrocket.client.core.names import wrap
from skyrocket.errors import DataError
from skyrocket.model import property_names
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.offsets import ConsumerStatus, ResetOffsetList, ResetOffsets
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo, DirectConsumption
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.errors import RequestError, SystemFailure
from skyrocket.protocol.requests.server_to_client import (
    CheckTransactionState,
    ConsumeMessageDirectly,
    GetConsumerRunningInfo,
    GetConsumerStatusFromClient,
    NotifyConsumerIdsChanged,
    PushReplyMessageToClient,
    ResetConsumerClientOffset,
)
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import UNANSWERED, Answered, Handlers, serve, serve_raw

_logger = logging.getLogger(__name__)


class Members(Protocol):
    """Whom the requests are for."""

    namespace: str
    producers: dict[str, ProducerMember]
    consumers: dict[str, ConsumerMember]
    replies: dict[str, asyncio.Future[ReceivedMessage]]

    async def refresh_route(self, topic: str) -> None:
        """Ask the name servers for the route of a topic now."""
        ...


def server_requests(members: Members) -> Handlers:
    """Who answers these requests for the members of a client."""
    requests = _ServerRequests(members)
    return (
        serve(NotifyConsumerIdsChanged, requests.members_changed),
        serve_raw(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, requests.reset_offsets),  # two forms of its body
        serve(GetConsumerStatusFromClient, requests.status),
        serve(GetConsumerRunningInfo, requests.running_info),
        serve(ConsumeMessageDirectly, requests.consume_directly),
        serve(CheckTransactionState, requests.check_transaction),
        serve(PushReplyMessageToClient, requests.reply),
    )


class _ServerRequests:
    def __init__(self, members: Members) -> None:
        self._members = members

    def _consumer(self, group: str) -> ConsumerMember:
        found = self._members.consumers.get(group)
        if found is None:
            raise SystemFailure(f"The Consumer Group <{group}> not exist in this consumer")
        return found

    async def members_changed(self, _: Peer, header: NotifyConsumerIdsChanged, __: Body) -> Answered:
        """Share the queues anew; our brokers name a topic whose queues are others now."""
        member = self._members.consumers.get(header.consumer_group)
        if member is None:
            return UNANSWERED
        if header.topic in member.topics:
            try:
                await self._members.refresh_route(header.topic)
            except (ClientError, RemotingError) as error:
                _logger.warning("the new queues are not known yet topic=%s reason=%s", header.topic, error)
        member.rebalance_soon()
        return UNANSWERED

    async def reset_offsets(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """RESET_CONSUMER_CLIENT_OFFSET; oneway from brokers, so nobody waits for the answer."""
        header = ResetConsumerClientOffset.from_fields(request.ext_fields)
        await self._consumer(header.group).reset_offsets(header.topic, reset_table(request.body))
        return request.answer(ResponseCode.SUCCESS)

    def status(self, _: Peer, header: GetConsumerStatusFromClient, __: Body) -> ConsumerStatus:
        return ConsumerStatus(by_queue=self._consumer(header.group).offsets_of(header.topic))

    def running_info(self, _: Peer, header: GetConsumerRunningInfo, __: Body) -> ConsumerRunningInfo:
        return self._consumer(header.consumer_group).running_info(header.jstack_enable)

    async def consume_directly(self, _: Peer, header: ConsumeMessageDirectly, body: Body) -> DirectConsumption:
        member = self._consumer(header.consumer_group)
        try:
            (message,) = decode_messages(body, header.broker_name or "")
        except (DataError, ValueError) as error:
            raise SystemFailure(f"the body is not a message: {error}") from None
        return await member.consume_directly(message)

    def reply(self, _: Peer, header: PushReplyMessageToClient, body: Body) -> None:
        """One that nobody waits for any more is passed over."""
        message = reply_message(header, bytes(body))
        waiting = self._members.replies.pop(message.properties.get(CORRELATION_ID, ""), None)
        if waiting is None:
            _logger.warning("a reply that nobody waits for topic=%s", message.topic)
        elif not waiting.done():
            waiting.set_result(message)

    async def check_transaction(self, peer: Peer, header: CheckTransactionState, body: Body) -> Answered:
        """Oneway. The producer answers with END_TRANSACTION."""
        try:
            (message,) = decode_messages(body, header.broker_name or "")
        except (DataError, ValueError) as error:
            _logger.warning("a transaction check without a message broker=%s reason=%s", peer.remote_address, error)
            return UNANSWERED
        group = message.properties.get(property_names.PRODUCER_GROUP, "")
        member = self._members.producers.get(wrap(self._members.namespace, group))
        if member is None:
            _logger.warning("a transaction check for a group that is not here group=%s", group)
        else:
            await member.check_transaction(message, TransactionCheck(str(peer.remote_address), header))
        return UNANSWERED


def reset_table(body: Body) -> Mapping[MessageQueue, int]:
    """The offsets of a reset, in Java's or in C++'s form."""
    try:
        return ResetOffsets.decode(body).offsets
    except RequestError:
        lines = ResetOffsetList.decode(body).offsets
        return {MessageQueue(line.topic, line.broker_name, line.queue_id): line.offset for line in lines}
