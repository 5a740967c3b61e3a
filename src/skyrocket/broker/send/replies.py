"""SEND_REPLY_MESSAGE: the answer to a message that asked for one goes straight to the client that waits for it.

replier ── 324, 325 ──▶ broker ── 326 ──▶ requester      found by its client id among the producers
                          └──▶ the reply topic           afterwards, whether the push went well or not
"""

import random
from collections.abc import Awaitable
from typing import Final, NamedTuple

from skyrocket.broker.core.dispatching import is_flushed
from skyrocket.broker.rules.put_rules import check_own_properties, with_replaced
from skyrocket.broker.state.identity import BrokerIdentity, packed_host
from skyrocket.broker.state.tables import Tables
from skyrocket.clock import Clock
from skyrocket.config.sections import FlushDiskType
from skyrocket.format.message_id import offset_message_id
from skyrocket.format.properties import find_property
from skyrocket.format.record import pack_host
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.messaging import (
    SendMessage,
    SendMessageAnswer,
    SendReplyMessage,
    SendReplyMessageV2,
)
from skyrocket.protocol.requests.server_to_client import PushReplyMessageToClient
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore

PUSH_SECONDS: Final = 10.0

_REPLY_TO: Final = b"REPLY_TO_CLIENT"


class _StoredReply(NamedTuple):
    """What an answer says of where the reply is; RocketMQ: zeros when it was only pushed."""

    msg_id: str
    queue_offset: int


class ReplyProcessor:
    """Pushes replies and keeps them."""

    def __init__(
        self,
        store: MessageStore,
        tables: Tables,
        identity: BrokerIdentity,
        clock: Clock,
        *,
        stores_replies: bool,
    ) -> None:
        self._store = store
        self._topics = tables.topics
        self._producers = tables.producers
        self._identity = identity
        self._clock = clock
        self._stores_replies = stores_replies
        self._trace_on = "true" if identity.trace_on else "false"

    def handlers(self) -> Handlers:
        # Raw, as all that stores messages: two codes with the same fields under other names.
        return (serve_raw((RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2), self.reply),)

    def reply(self, peer: Peer, request: RemotingCommand) -> Awaitable[RemotingCommand]:
        """Check and hand on a reply; raises the refusals of its topic."""
        long_names = request.code == RequestCode.SEND_REPLY_MESSAGE
        header = (SendReplyMessage if long_names else SendReplyMessageV2).from_fields(request.ext_fields)
        try:
            message = self._checked(peer, request, header)
        except RequestError as error:
            error.ext_fields = {"TRACE_ON": self._trace_on, "MSG_REGION": self._identity.region}
            raise
        return self._handed_on(peer, request, header, message)

    def _checked(self, peer: Peer, request: RemotingCommand, header: SendMessage) -> PutMessage:
        topic = self._topics.sendable(
            header.topic,
            header.queue_id,
            template=header.default_topic,
            template_queues=header.default_topic_queue_nums,
            unit_mode=header.unit_mode,
            producer=str(peer.remote_address),
        )
        properties = (header.properties or "").encode()
        check_own_properties(properties, header.sys_flag)
        properties = with_replaced(properties, b"MSG_REGION", self._identity.region.encode())
        properties = with_replaced(properties, b"TRACE_ON", self._trace_on.encode())
        return PutMessage(
            topic.name,
            header.queue_id if header.queue_id >= 0 else random.randrange(max(topic.write_queues, 1)),
            bytes(request.body),
            properties,
            header.flag,
            header.sys_flag,
            header.born_timestamp,
            pack_host(packed_host(peer.remote_address)),
            header.reconsume_times or 0,
        )

    async def _handed_on(
        self, peer: Peer, request: RemotingCommand, header: SendMessage, message: PutMessage
    ) -> RemotingCommand:
        failure = await self._push(peer, header, message)
        place = None if failure is not None else _StoredReply("0", 0)
        if self._stores_replies:
            place = await self._kept(message) or place
        fields = {"TRACE_ON": self._trace_on, "MSG_REGION": self._identity.region}
        if place is not None:
            fields = SendMessageAnswer(
                region=self._identity.region,
                trace_on=self._trace_on,
                msg_id=place.msg_id,
                queue_id=message.queue_id,
                queue_offset=place.queue_offset,
            ).to_fields()
        code = ResponseCode.SUCCESS if failure is None else ResponseCode.SYSTEM_ERROR
        return request.answer(code, failure, fields)

    # ── to the client ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _push(self, peer: Peer, header: SendMessage, message: PutMessage) -> str | None:
        """Give the reply to its client; what went wrong, in RocketMQ's words."""
        found = find_property(message.properties, _REPLY_TO)
        if found is None:
            return "reply message properties[REPLY_TO_CLIENT] is null"
        client_id = found.decode("utf-8", "replace")
        client = self._producers.find(client_id)
        if client is None:
            return f"push reply message fail, channel of <{client_id}> not found."
        try:
            await client.connection.call(
                self._request(peer, header, message), message.body, timeout_seconds=PUSH_SECONDS
            )
        except (RemotingError, RequestError):
            return f"push reply message to {client_id}fail."
        return None

    def _request(self, peer: Peer, header: SendMessage, message: PutMessage) -> PushReplyMessageToClient:
        now_ms = self._clock.now_ms()
        properties = with_replaced(message.properties, b"PUSH_REPLY_TIME", b"%d" % now_ms)
        return PushReplyMessageToClient(
            producer_group=header.producer_group,
            topic=header.topic,
            default_topic=header.default_topic,
            default_topic_queue_nums=header.default_topic_queue_nums,
            queue_id=message.queue_id,
            sys_flag=header.sys_flag,
            born_timestamp=header.born_timestamp,
            flag=header.flag,
            properties=properties.decode("utf-8", "replace"),
            reconsume_times=message.reconsume_times,
            unit_mode=header.unit_mode,
            born_host=str(peer.remote_address),
            store_host=str(self._identity.address),
            store_timestamp=now_ms,
        )

    # ── into the log ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _kept(self, message: PutMessage) -> _StoredReply | None:
        """Store the reply too; None when it was not taken. RocketMQ: the answer's code does not tell."""
        result = self._store.put(message)
        if not result.ok:
            return None
        waits = self._store.config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        if waits and find_property(message.properties, b"WAIT") != b"false":
            # Not longer than a send would.
            await is_flushed(self._store, result.end_offset, self._store.config.sync_flush_timeout_ms)
        return _StoredReply(offset_message_id(self._identity.store_host, result.physical_offset), result.queue_offset)
