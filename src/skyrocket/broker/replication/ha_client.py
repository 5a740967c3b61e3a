"""The slave's end of the HA stream: connects to the master's HA port, again and again, and appends what comes."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from skyrocket.broker.replication.slave_stream import MasterLeft, ReplicaLog, ReportRules, SlaveStream
from skyrocket.clock import Clock
from skyrocket.errors import StoreError
from skyrocket.protocol.errors import ProtocolError
from skyrocket.remoting.addresses import Address

_logger = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 5.0
_READ_BYTES: Final = 1 << 20


class HaClient:
    """Follows one master; `master` says which, and may change its mind."""

    def __init__(
        self,
        log: ReplicaLog,
        clock: Clock,
        master: Callable[[], Address | None],
        *,
        rules: ReportRules | None = None,
        retry_seconds: float = 5.0,
    ) -> None:
        self._log = log
        self._clock = clock
        self._master = master
        self._rules = rules or ReportRules()
        self._retry_seconds = retry_seconds
        self.stream: SlaveStream | None = None  # while connected
        self._writer: asyncio.StreamWriter | None = None
        self.trouble: str | None = "not connected yet"

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            address = self._master()
            if address is None:
                self._say("the address of the master's HA port is not known")
            else:
                await self._follow(address)
            await asyncio.sleep(self._retry_seconds)

    async def _follow(self, address: Address) -> None:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(address.host, address.port, limit=_READ_BYTES)
        except (OSError, TimeoutError) as error:
            self._say(f"cannot connect to {address}: {error or 'time-out'}")
            return
        _logger.info("following master=%s from=%d", address, self._log.end_offset)
        self.trouble = None
        self._writer = writer
        try:
            await self._exchange(reader, writer)
        except (OSError, MasterLeft, ProtocolError, StoreError) as error:
            self._say(f"left {address}: {error}")
        finally:
            self.stream = self._writer = None
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        now = self._clock.monotonic()
        self.stream = stream = SlaveStream(self._log, self._rules, now)
        writer.write(stream.begin(now))
        while True:
            data = b""
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(stream.next_look(self._clock.monotonic())):
                    data = await reader.read(_READ_BYTES)
                    if not data:
                        raise MasterLeft("the master closed the connection")
            now = self._clock.monotonic()
            report = (stream.receive(data, now) if data else b"") or stream.due(now)
            if report:
                writer.write(report)
                await writer.drain()

    def flushed(self) -> None:
        """The disk has more of the log now: report what may be acknowledged."""
        if self.stream is not None and self._writer is not None:
            self._writer.write(self.stream.progress(self._clock.monotonic()))

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            _logger.warning("not following reason=%s", trouble)
        self.trouble = trouble
