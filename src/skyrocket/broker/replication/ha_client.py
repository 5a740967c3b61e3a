"""The slave's end of the HA stream: connects to the master's HA port, again and again, and appends what comes."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable
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
        when_flushed: Callable[[int, Callable[[bool], None]], None] | None = None,
        may_follow: Callable[[], Awaitable[str | None]] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`when_flushed` is that of the flusher, for a log that is acknowledged when the disk has it.

        `may_follow` is asked before each connection; it gives the reason when the master must not be followed.
        """
        self._log = log
        self._clock = clock
        self._master = master
        self._rules = rules or ReportRules()
        self._retry_seconds = retry_seconds
        self._when_flushed = when_flushed
        self._may_follow = may_follow
        self._tls = tls
        self._awaits_flush = False
        self._is_stopped = False
        self._wake = asyncio.Event()
        self.stream: SlaveStream | None = None  # while connected
        self._writer: asyncio.StreamWriter | None = None
        self.trouble: str | None = "not connected yet"

    async def run(self) -> None:
        """Follow until cancelled or stopped."""
        while not self._is_stopped:
            address = self._master()
            if address is None:
                self._say("the address of the master's HA port is not known")
            else:
                await self._follow(address)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._retry_seconds):
                    await self._wake.wait()
            self._wake.clear()

    def look_again(self) -> None:
        """The master may be another one now: do not wait until the pause is over."""
        self._wake.set()

    def stop(self) -> None:
        """Leave the master, and follow nobody any more."""
        self._is_stopped = True
        self._wake.set()
        if self._writer is not None:
            self._writer.transport.abort()

    async def _follow(self, address: Address) -> None:
        reason = await self._may_follow() if self._may_follow is not None else None
        if reason is not None:
            self._say(reason)
            return
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    address.host, address.port, limit=_READ_BYTES, ssl=self._tls
                )
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
                    if not data or self._is_stopped:
                        raise MasterLeft("the connection is closed")
            now = self._clock.monotonic()
            report = (stream.receive(data, now) if data else b"") or stream.due(now)
            self._await_flush()
            if report:
                writer.write(report)
                await writer.drain()

    def _await_flush(self) -> None:
        """What the disk has is acknowledged at once; one wait at a time."""
        if self._when_flushed is None or self._awaits_flush or self._log.safe_offset >= self._log.end_offset:
            return
        self._awaits_flush = True
        loop = asyncio.get_running_loop()

        def flushed(ok: bool) -> None:  # in the flusher's thread
            with contextlib.suppress(RuntimeError):  # the loop has ended, nobody waits
                loop.call_soon_threadsafe(self._flushed, ok)

        self._when_flushed(self._log.end_offset, flushed)

    def _flushed(self, ok: bool) -> None:
        self._awaits_flush = False
        if ok and self.stream is not None and self._writer is not None:
            self._writer.write(self.stream.progress(self._clock.monotonic()))
            self._await_flush()

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            _logger.warning("not following reason=%s", trouble)
        self.trouble = trouble
