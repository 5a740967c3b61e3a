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
from skyrocket.remoting.router import Router

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


def register(router: Router, members: Members) -> None:
    """Answer these requests for the members of a client."""
    requests = _ServerRequests(members)
    router.register(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, requests.members_changed)
    router.register(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, requests.reset_offsets)
    router.register(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, requests.status)
    router.register(RequestCode.GET_CONSUMER_RUNNING_INFO, requests.running_info)
    router.register(RequestCode.CONSUME_MESSAGE_DIRECTLY, requests.consume_directly)
    router.register(RequestCode.CHECK_TRANSACTION_STATE, requests.check_transaction)
    router.register(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, requests.reply)


class _ServerRequests:
    def __init__(self, members: Members) -> None:
        self._members = members

    def _consumer(self, group: str) -> ConsumerMember:
        found = self._members.consumers.get(group)
        if found is None:
            raise SystemFailure(f"The Consumer Group <{group}> not exist in this consumer")
        return found

    async def members_changed(self, _: Peer, request: RemotingCommand) -> None:
        """NOTIFY_CONSUMER_IDS_CHANGED: share the queues anew; our brokers name a topic whose queues are others now."""
        header = NotifyConsumerIdsChanged.from_fields(request.ext_fields)
        member = self._members.consumers.get(header.consumer_group)
        if member is None:
            return
        if header.topic in member.topics:
            try:
                await self._members.refresh_route(header.topic)
            except (ClientError, RemotingError) as error:
                _logger.warning("the new queues are not known yet topic=%s reason=%s", header.topic, error)
        member.rebalance_soon()

    async def reset_offsets(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """RESET_CONSUMER_CLIENT_OFFSET; oneway from brokers, so nobody waits for the answer."""
        header = ResetConsumerClientOffset.from_fields(request.ext_fields)
        await self._consumer(header.group).reset_offsets(header.topic, reset_table(request.body))
        return request.answer(ResponseCode.SUCCESS)

    def status(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_CONSUMER_STATUS_FROM_CLIENT."""
        header = GetConsumerStatusFromClient.from_fields(request.ext_fields)
        status = ConsumerStatus(by_queue=self._consumer(header.group).offsets_of(header.topic))
        return request.answer(ResponseCode.SUCCESS, body=status.encode())

    def running_info(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_CONSUMER_RUNNING_INFO."""
        header = GetConsumerRunningInfo.from_fields(request.ext_fields)
        info = self._consumer(header.consumer_group).running_info(header.jstack_enable)
        return request.answer(ResponseCode.SUCCESS, body=info.encode())

    async def consume_directly(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """CONSUME_MESSAGE_DIRECTLY."""
        header = ConsumeMessageDirectly.from_fields(request.ext_fields)
        member = self._consumer(header.consumer_group)
        try:
            (message,) = decode_messages(request.body, header.broker_name or "")
        except (DataError, ValueError) as error:
            raise SystemFailure(f"the body is not a message: {error}") from None
        result = await member.consume_directly(message)
        return request.answer(ResponseCode.SUCCESS, body=result.encode())

    def reply(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """PUSH_REPLY_MESSAGE_TO_CLIENT: one that nobody waits for any more is passed over."""
        message = reply_message(PushReplyMessageToClient.from_fields(request.ext_fields), bytes(request.body))
        waiting = self._members.replies.pop(message.properties.get(CORRELATION_ID, ""), None)
        if waiting is None:
            _logger.warning("a reply that nobody waits for topic=%s", message.topic)
        elif not waiting.done():
            waiting.set_result(message)
        return request.answer(ResponseCode.SUCCESS)

    async def check_transaction(self, peer: Peer, request: RemotingCommand) -> None:
        """CHECK_TRANSACTION_STATE; oneway. The producer answers with END_TRANSACTION."""
        header = CheckTransactionState.from_fields(request.ext_fields)
        try:
            (message,) = decode_messages(request.body, header.broker_name or "")
        except (DataError, ValueError) as error:
            _logger.warning("a transaction check without a message broker=%s reason=%s", peer.remote_address, error)
            return
        group = message.properties.get(property_names.PRODUCER_GROUP, "")
        member = self._members.producers.get(wrap(self._members.namespace, group))
        if member is None:
            _logger.warning("a transaction check for a group that is not here group=%s", group)
            return
        await member.check_transaction(message, TransactionCheck(str(peer.remote_address), header))


def reset_table(body: Body) -> Mapping[MessageQueue, int]:
    """The offsets of a reset, in Java's or in C++'s form."""
    try:
        return ResetOffsets.decode(body).offsets
    except RequestError:
        lines = ResetOffsetList.decode(body).offsets
        return {MessageQueue(line.topic, line.broker_name, line.queue_id): line.offset for line in lines}
