"""What a slave takes over from its master beside the log: topics, groups, offsets and the like, by requests.

Each feature says what it wants (`Feature.copied`). A master that does not know a request, as older ones do not know
all, is asked the others. The log is not followed before topics were taken over once: they say whose queues are queues
of batches.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Final

from skyrocket.broker.core.feature import Copied
from skyrocket.broker.state.broker_set import BrokerSet
from skyrocket.clock import Clock
from skyrocket.errors import DataError
from skyrocket.protocol.errors import RequestError
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

PERIOD_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 1.0
_GATHER_SECONDS: Final = 0.1  # so that what changes together is asked for once


class MetadataSync:
    """Of a slave."""

    def __init__(
        self,
        client: RemotingClient,
        broker_set: BrokerSet,
        copied: Callable[[], Iterable[Copied]],
        clock: Clock,
        *,
        period_seconds: float = PERIOD_SECONDS,
    ) -> None:
        self._client = client
        self._set = broker_set
        self._copied = copied
        self._clock = clock
        self._period_seconds = period_seconds
        self._wake = asyncio.Event()
        self.synced_at: float | None = None  # monotonic; of the last time that all was taken over
        self.trouble: str | None = "the master is not known yet"
        self.on_synced: Callable[[], None] = lambda: None
        broker_set.on_master(self.soon)

    async def run(self) -> None:
        """Take over until cancelled."""
        while True:
            self._wake.clear()
            is_done = await self.sync()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._period_seconds if is_done else _RETRY_SECONDS):
                    await self._wake.wait()
                    await asyncio.sleep(_GATHER_SECONDS)

    def soon(self) -> None:
        """Do not wait until the pause is over."""
        self._wake.set()

    async def sync(self) -> bool:
        """Ask for everything now; whether the master answered."""
        address = self._set.master_address
        if address is None:
            return False
        try:
            for each in self._copied():
                await self._take(address, each)
        except RemotingError as error:
            self._say(f"the master {address} does not answer: {error}")
            return False
        self.trouble = None
        self.synced_at = self._clock.monotonic()
        self.on_synced()
        return True

    async def _take(self, address: str, each: Copied) -> None:
        name = type(each.request).__name__
        try:
            reply = await self._client.call(address, each.request)
            each.take(bytes(reply.body))
        except RequestError as error:
            _logger.info("the master does not tell request=%s reason=%s", name, error)
        except DataError as error:
            _logger.warning("the master's answer cannot be read request=%s reason=%s", name, error)

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            _logger.warning("tables of the master not taken over reason=%s", trouble)
        self.trouble = trouble
