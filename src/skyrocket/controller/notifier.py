"""Tells the living brokers of a set who is master now; only the newest word to each is worth saying."""

import asyncio
import logging
from typing import Final

from skyrocket.controller.decisions import RoleChange
from skyrocket.protocol.bodies.controller import SyncStateSet
from skyrocket.protocol.requests.controller import NotifyBrokerRoleChanged
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.tasks import TaskSet

_logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 3
_PAUSE_SECONDS: Final = 0.5


class Notifier:
    """At most one task for each broker: a later election takes the place of an earlier."""

    def __init__(self, client: RemotingClient) -> None:
        self.sent = 0
        self._client = client
        self._tasks = TaskSet()
        self._telling: dict[str, asyncio.Task[None]] = {}

    def tell(self, change: RoleChange) -> None:
        """Begin to tell all; RocketMQ's brokers ask by themselves every 5 s, so that a lost word is no harm."""
        for address in change.tell.values():
            earlier = self._telling.get(address)
            if earlier is not None:
                earlier.cancel()
            task = self._tasks.start(self._tell(address, change), name=f"tell {address} its role")
            self._telling[address] = task
            task.add_done_callback(lambda done, address=address: self._ended(address, done))  # type: ignore[misc]

    async def close(self) -> None:
        """Say no more."""
        await self._tasks.cancel()

    def _ended(self, address: str, task: "asyncio.Task[None]") -> None:
        if self._telling.get(address) is task:
            del self._telling[address]

    async def _tell(self, address: str, change: RoleChange) -> None:
        after = change.replica_set
        word = NotifyBrokerRoleChanged(
            master_address=after.address_of(after.master_id),
            master_epoch=after.master_epoch,
            sync_state_set_epoch=after.sync_epoch,
            master_broker_id=after.master_id,
        )
        body = SyncStateSet(tuple(sorted(after.in_sync)), after.sync_epoch).encode()
        for attempt in range(_ATTEMPTS):
            try:
                await self._client.call_oneway(address, word, body)
            except RemotingError as error:
                _logger.warning("a broker was not told its role address=%s reason=%s", address, error)
                if attempt + 1 < _ATTEMPTS:
                    await asyncio.sleep(_PAUSE_SECONDS)
            else:
                self.sent += 1
                return
