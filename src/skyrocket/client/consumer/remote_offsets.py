"""Offsets that the brokers keep."""

import asyncio
import logging
from collections.abc import Iterable

from skyrocket.client.consumer.offset_store import OffsetStore
from skyrocket.client.core.errors import BrokerRefused, ClientError
from skyrocket.client.core.instance import ClientInstance
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.offsets import QueryConsumerOffset, UpdateConsumerOffset
from skyrocket.remoting.errors import CallTimeout, RemotingError

_logger = logging.getLogger(__name__)

_NOT_SAVED = "an offset was not saved"
_TIMEOUT = 5.0
_CONFIRMED_ATTEMPTS = 3  # of a save that is waited for, when no answer comes in time


class RemoteOffsets(OffsetStore):
    """Kept by the broker that has the queue."""

    def __init__(self, instance: ClientInstance, group: str, *, new_group_from_zero: bool = True) -> None:
        super().__init__()
        self._instance = instance
        self._group = group
        self._zero = None if new_group_from_zero else False

    async def stored(self, queue: MessageQueue) -> int | None:
        request = QueryConsumerOffset(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            set_zero_if_not_found=self._zero,
            broker_name=queue.broker_name,
        )
        address = await self._address(queue)
        try:
            reply = await self._instance.ask(
                address, request, doing=f"asking for the offset of {queue}", timeout=_TIMEOUT
            )
        except BrokerRefused as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return reply.header.offset

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        known = self.of_queues(queues)
        await asyncio.gather(*(self._save(queue, offset, confirmed) for queue, offset in known.items()))

    async def _save(self, queue: MessageQueue, offset: int, confirmed: bool) -> None:
        request = UpdateConsumerOffset(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
            broker_name=queue.broker_name,
        )
        try:
            address = await self._address(queue)
            if confirmed:
                await self._ask(address, request)
            else:
                await self._instance.remoting.call_oneway(address, request, timeout_seconds=_TIMEOUT)
            self._instance.troubles.works(_logger, queue.broker_name, _NOT_SAVED)
        except (ClientError, RemotingError) as error:
            details = f"queue={queue} offset={offset}"
            self._instance.troubles.failed(_logger, queue.broker_name, _NOT_SAVED, details, error)

    async def _ask(self, address: str, request: UpdateConsumerOffset) -> None:
        """Sent again when no answer comes in time: an offset may be saved twice. Raises what the last attempt did."""
        doing = f"saving the offset of {request.topic}/{request.queue_id}"
        for attempt in range(1, _CONFIRMED_ATTEMPTS + 1):
            try:
                await self._instance.ask(address, request, doing=doing, timeout=_TIMEOUT)
            except CallTimeout:
                if attempt == _CONFIRMED_ATTEMPTS:
                    raise
                _logger.warning("no answer while %s, it is sent again attempt=%d", doing, attempt)
            else:
                return

    async def _address(self, queue: MessageQueue) -> str:
        """The master; without one any replica will do, which hands it on."""
        leader = self._instance.leader(queue)
        found = self._instance.brokers.replica(leader, 0)
        return found[0] if found is not None else await self._instance.master_of(queue)
