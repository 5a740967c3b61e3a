"""Questions that only a client can answer, passed on over the connection that it has opened.

tool ─ GET_CONSUMER_RUNNING_INFO ──▶ broker ──▶ consumer ──▶ broker ──▶ tool
     ─ CONSUME_MESSAGE_DIRECTLY ──▶         (with the message)
     ─ INVOKE_BROKER_TO_GET_CONSUMER_STATUS ─▶ all members ─▶ one table
"""

import asyncio
import logging
from typing import Final

from skyrocket.broker.state.connected_clients import Client, too_old
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.tables import Tables
from skyrocket.errors import DataError
from skyrocket.format.message_id import parse_offset_message_id
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.offsets import ConsumerStatus
from skyrocket.protocol.codes import Version, version_name
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.errors import ConsumeMessageTimeout, RequestError, SystemFailure
from skyrocket.protocol.java_order import java_map_order
from skyrocket.protocol.requests.offsets import GetConsumerStatus
from skyrocket.protocol.requests.server_to_client import (
    ConsumeMessageDirectly,
    GetConsumerRunningInfo,
    GetConsumerStatusFromClient,
)
from skyrocket.remoting.errors import CallTimeout, RemotingError
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve, serve_raw
from skyrocket.store.message_store import MessageStore

_logger = logging.getLogger(__name__)

RELAY_SECONDS: Final = 10.0
STATUS_SECONDS: Final = 5.0


class ClientRelay:
    """Asks consumers on behalf of tools; every wait is bounded."""

    def __init__(
        self,
        store: MessageStore,
        tables: Tables,
        identity: BrokerIdentity,
        *,
        relay_seconds: float = RELAY_SECONDS,
        status_seconds: float = STATUS_SECONDS,
    ) -> None:
        self._store = store
        self._consumers = tables.consumers
        self._topics = tables.topics
        self._groups = tables.groups
        self._identity = identity
        self.relay_seconds = relay_seconds
        self.status_seconds = status_seconds

    def handlers(self) -> Handlers:
        return (
            # Raw: these two pass on what they do not know, there and back.
            serve_raw(GetConsumerRunningInfo.code, self.running_info),
            serve_raw(ConsumeMessageDirectly.code, self.consume_directly),
            serve(GetConsumerStatus, self.status),
        )

    # ── one client ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def running_info(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """Pass the question on to the client."""
        header = GetConsumerRunningInfo.from_fields(request.ext_fields)
        return await self._relayed(request, header.consumer_group, header.client_id, request.ext_fields, request.body)

    async def consume_directly(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """The tool names a message, the client is sent the message itself."""
        header = ConsumeMessageDirectly.from_fields(request.ext_fields)
        fields = {**(request.ext_fields or {}), "brokerName": self._identity.broker_name}
        topic, group = self._topics.find(header.topic or ""), self._groups.find(header.consumer_group)
        if topic is not None:
            fields["topicSysFlag"] = str(topic.sys_flag)
        if group is not None:
            fields["groupSysFlag"] = str(group.sys_flag)
        fields = {name: fields[name] for name in java_map_order(fields)}
        body = self._record(header.msg_id) if header.msg_id else request.body
        return await self._relayed(request, header.consumer_group, header.client_id or "", fields, body)

    def _record(self, message_id: str) -> bytes:
        try:
            offset = parse_offset_message_id(message_id).physical_offset
        except DataError as error:
            raise SystemFailure(f"msgId {message_id!r} is not an offset message id: {error}") from None
        record = self._store.shown_at(offset)
        if record is None:
            raise SystemFailure(f"can not find message by the offset, {offset}")
        return bytes(record)

    async def _relayed(
        self, request: RemotingCommand, group: str, client_id: str, fields: dict[str, str] | None, body: Body
    ) -> RemotingCommand:
        """The client's own answer, as it is; raises the refusals of a client that cannot be asked."""
        client = self._consumers.find(group, client_id)
        if client is None:
            raise SystemFailure(f"The Consumer <{group}> <{client_id}> not online")
        if client.version < Version.V3_1_8_SNAPSHOT:
            raise SystemFailure(
                f"The Consumer <{client_id}> Version <{version_name(client.version)}> too low to finish, "
                "please upgrade it to V3_1_8_SNAPSHOT"
            )
        asked = RemotingCommand(request.code, ext_fields=fields, body=body)
        try:
            answer = await client.connection.invoke(asked, self.relay_seconds)
        except CallTimeout as error:
            raise ConsumeMessageTimeout(f"consumer <{group}> <{client_id}> Timeout: {error}") from None
        except RemotingError as error:
            raise SystemFailure(f"invoke consumer <{group}> <{client_id}> Exception: {error}") from None
        return request.answer(answer.code, answer.remark, answer.ext_fields, answer.body)

    # ── all members ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def status(self, _: Peer, header: GetConsumerStatus, __: Body) -> ConsumerStatus:
        """Offsets as the members of a group see them; those that do not answer are left out."""
        found = self._consumers.find_group(header.group)
        if found is None:
            raise SystemFailure(f"No Any Consumer online in the consumer group: [{header.group}]")
        clients = found.clients
        for client in clients:
            if client.version < Version.V3_0_7_SNAPSHOT:
                raise too_old(client.version)
        wanted = (header.client_address or "").strip()  # RocketMQ: a client id, whatever its name says
        asked = [client for client in clients if wanted in ("", client.client_id)]
        question = GetConsumerStatusFromClient(topic=header.topic, group=header.group)
        answers = await asyncio.gather(*(self._status_of(client, question) for client in asked))
        table = {
            client.client_id: offsets for client, offsets in zip(asked, answers, strict=True) if offsets is not None
        }
        return ConsumerStatus(by_client=table)

    async def _status_of(
        self, client: Client[Peer], question: GetConsumerStatusFromClient
    ) -> dict[MessageQueue, int] | None:
        try:
            reply = await client.connection.call(question, timeout_seconds=self.status_seconds)
            return dict(ConsumerStatus.decode(reply.body).by_queue) if reply.body else None
        except (RemotingError, RequestError) as error:
            _logger.warning("a consumer did not tell its offsets client=%s reason=%s", client.client_id, error)
            return None
