"""What a slave takes over from its master beside the log: topics, groups, offsets and the like, by requests.

Each feature says what it wants (`Feature.copied`, and `copied_tables` for what comes in pages). A master that does not
know a request, as older ones do not know all, is asked the others. The log is not followed before topics were taken
over once: they say whose queues are queues of batches. What says that messages were delivered waits until the log with
those messages is here: a slave that is made the master would not deliver them again.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from skyrocket.broker.core.feature import Copied, CopiedTable, Feature
from skyrocket.broker.state.broker_set import BrokerSet
from skyrocket.clock import Clock
from skyrocket.errors import DataError
from skyrocket.protocol.bodies.tables import KvTable
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.admin_broker import GetBrokerRuntimeInfo
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

PERIOD_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 1.0
_GATHER_SECONDS: Final = 0.1  # so that what changes together is asked for once


class _Held(NamedTuple):
    """What waits for the log before an offset."""

    end_offset: int
    bodies: list[tuple[Copied, bytes]]


class MetadataSync:
    """Of a slave."""

    def __init__(
        self,
        client: RemotingClient,
        broker_set: BrokerSet,
        features: Sequence[Feature],
        clock: Clock,
        has_log: Callable[[int], bool],
        *,
        period_seconds: float = PERIOD_SECONDS,
    ) -> None:
        self._client = client
        self._set = broker_set
        self._features = features
        self._clock = clock
        self._has_log = has_log  # whether this slave has the log before an offset, on disk
        self._held: _Held | None = None
        self.master_end_offset: int | None = None  # when the master was last asked
        self._period_seconds = period_seconds
        self._wake = asyncio.Event()
        self.synced_at: float | None = None  # monotonic; of the last time that all was taken over
        self.trouble: str | None = "the master is not known yet"
        self.on_synced: Callable[[], None] = lambda: None
        self.may_sync: Callable[[], bool] = lambda: True
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
        if address is None or not self.may_sync():
            return False
        try:
            for table in self._copied_tables():
                await self._take_table(address, table)
            for each in self._copied():
                if not each.after_log:
                    await self._take(address, each)
            self._take_held()
            bodies = await self._after_log(address) if self._held is None else []
            await self._look_at_log(address)  # after the bodies: what they rest on lies before its end
            if bodies and self.master_end_offset is not None:
                self._held = _Held(self.master_end_offset, bodies)
                self._take_held()
            await self._give_back(address)
        except RemotingError as error:
            self._say(f"the master {address} does not answer: {error}")
            return False
        except RequestError as error:
            self._say(f"the master {address} does not tell its tables: {error}")
            return False
        self.trouble = None
        self.synced_at = self._clock.monotonic()
        self.on_synced()
        return True

    def _copied(self) -> Iterator[Copied]:
        for feature in self._features:
            yield from feature.copied()

    def _copied_tables(self) -> Iterator[CopiedTable]:
        for feature in self._features:
            yield from feature.copied_tables()

    async def _give_back(self, address: str) -> None:
        for feature in self._features:
            for each in feature.given_back():
                try:
                    await self._client.call(address, each.request)
                except RequestError as error:
                    name = type(each.request).__name__
                    _logger.warning("the master takes nothing back request=%s reason=%s", name, error)
                each.done()

    async def _after_log(self, address: str) -> list[tuple[Copied, bytes]]:
        """What rests on the log."""
        asked = [(each, await self._asked(address, each)) for each in self._copied() if each.after_log]
        return [(each, body) for each, body in asked if body is not None]

    async def _look_at_log(self, address: str) -> None:
        """How far the master's log is."""
        self.master_end_offset = None
        try:
            reply = await self._client.call(address, GetBrokerRuntimeInfo())
            self.master_end_offset = int(KvTable.decode(bytes(reply.body)).table["commitLogMaxOffset"])
        except (RequestError, DataError, KeyError, ValueError) as error:
            _logger.info("the end of the master's log is not known reason=%s", error)

    def _take_held(self) -> None:
        if self._held is not None and self._has_log(self._held.end_offset):
            for each, body in self._held.bodies:
                self._apply(each, body)
            self._held = None

    async def _take_table(self, address: str, each: CopiedTable) -> None:
        pages = each.pages()
        while (request := pages.request) is not None:
            reply = await self._client.call(address, request)
            pages.take(reply.header, bytes(reply.body))
        each.take(pages.table)

    async def _take(self, address: str, each: Copied) -> None:
        body = await self._asked(address, each)
        if body is not None:
            self._apply(each, body)

    async def _asked(self, address: str, each: Copied) -> bytes | None:
        try:
            return bytes((await self._client.call(address, each.request)).body)
        except RequestError as error:
            if each.is_needed:
                raise
            _logger.info("the master does not tell request=%s reason=%s", type(each.request).__name__, error)
            return None

    def _apply(self, each: Copied, body: bytes) -> None:
        try:
            each.take(body)
        except DataError as error:
            name = type(each.request).__name__
            _logger.warning("the master's answer cannot be read request=%s reason=%s", name, error)

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            _logger.warning("tables of the master not taken over reason=%s", trouble)
        self.trouble = trouble
