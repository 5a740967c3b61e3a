"""Locks of queues at their brokers, for consumption in order: a broker keeps one for 60 s, we renew it every 20 s."""

import asyncio
import logging
from collections.abc import Iterable

from skyrocket.client.core.errors import ClientError
from skyrocket.client.core.instance import ClientInstance
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.locks import LockedQueues, QueueLocks
from skyrocket.protocol.requests.consumers import LockBatchMq, UnlockBatchMq
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

RENEW_SECONDS = 20.0
_TIMEOUT = 1.0


class LockKeeper:
    """Asks brokers for locks in the name of one group member."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group

    async def lock(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, bool]:
        """Whether each is ours now; those whose broker did not answer are left out."""
        answers = await asyncio.gather(*(self._lock(broker, mine) for broker, mine in self._by_broker(queues).items()))
        return {queue: held for answer in answers for queue, held in answer.items()}

    async def _lock(self, broker: str, queues: list[MessageQueue]) -> dict[MessageQueue, bool]:
        try:
            address = await self._instance.master_of(queues[0])
            reply = await self._instance.ask(
                address, LockBatchMq(), self._body(queues), doing=f"locking queues of {broker}", timeout=_TIMEOUT
            )
        except (ClientError, RemotingError) as error:
            _logger.info("queues were not locked broker=%s reason=%s", broker, error)
            return {}
        held = set(LockedQueues.decode(reply.body).queues)
        return {queue: queue in held for queue in queues}

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Give them back, confirmed."""
        for broker, mine in self._by_broker(queues).items():
            try:
                address = await self._instance.master_of(mine[0])
                await self._instance.ask(
                    address, UnlockBatchMq(), self._body(mine), doing=f"unlocking queues of {broker}", timeout=_TIMEOUT
                )
            except (ClientError, RemotingError) as error:
                _logger.warning("queues stay locked for a minute broker=%s reason=%s", broker, error)

    def _body(self, queues: list[MessageQueue]) -> bytes:
        return QueueLocks(self._group, self._instance.client_id, tuple(queues)).encode()

    def _by_broker(self, queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
        table: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            table.setdefault(self._instance.leader(queue), []).append(queue)
        return table
