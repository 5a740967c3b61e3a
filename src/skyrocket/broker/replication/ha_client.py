"""The slave's end of the HA stream: connects to the master's HA port, again and again, and appends what comes."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Final, cast

from skyrocket.broker.replication.slave_stream import MasterLeft, ReplicaLog, ReportRules, SlaveStream
from skyrocket.clock import Clock
from skyrocket.errors import StoreError
from skyrocket.protocol.errors import ProtocolError
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.errors import plainly

_logger = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 5.0
_FLUSH_SECONDS: Final = 5.0
_QUIET_SECONDS: Final = 3.0  # the parts of a set find each other after a start
_UNSENT_BYTES: Final = 1 << 16

LEFT = (OSError, MasterLeft, ProtocolError, StoreError)  # why a master is left


class MasterLink(asyncio.Protocol):
    """The connection to a master: what comes is taken at once, without a copy in between."""

    def __init__(self, take: Callable[[bytes], bytes]) -> None:
        """`take` gives what is to be answered, and may raise what LEFT names."""
        self._take = take
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # always by an exception
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its base class

    def data_received(self, data: bytes) -> None:
        if self.ended.done():
            return
        try:
            report = self._take(data)
        except LEFT as error:
            self.end(error)
        else:
            self.write(report)

    def write(self, report: bytes) -> None:
        """Send a report, unless those before it have not left yet: a later one says the same and more."""
        transport = self._transport
        if report and transport is not None and transport.get_write_buffer_size() < _UNSENT_BYTES:
            transport.write(report)

    def connection_lost(self, error: Exception | None) -> None:
        self.end(error if isinstance(error, OSError) else MasterLeft(f"the connection is closed: {error or 'by it'}"))

    def end(self, error: Exception) -> None:
        """Close; whoever waits for the end hears this reason."""
        if not self.ended.done():
            self.ended.set_exception(error)
            self.ended.exception()  # known to be there, whether somebody waits or not
        if self._transport is not None:
            self._transport.abort()


class HaClient:
    """Follows one master; `master` says which, and may change its mind."""

    def __init__(
        self,
        log: ReplicaLog,
        clock: Clock,
        master: Callable[[], Address | None],
        *,
        rules: ReportRules | None = None,
        when_flushed: Callable[[int, Callable[[bool], None]], None] | None = None,
        may_follow: Callable[[], Awaitable[str | None]] | None = None,
        tls: ssl.SSLContext | None = None,
        new_stream: Callable[[ReplicaLog, ReportRules, float], SlaveStream] = SlaveStream,
    ) -> None:
        """`when_flushed` is that of the flusher, for a log that is acknowledged when the disk has it.

        `may_follow` is asked before each connection; it gives the reason when the master must not be followed.
        """
        self._log = log
        self._clock = clock
        self._master = master
        self._rules = rules or ReportRules()
        self._when_flushed = when_flushed
        self._may_follow = may_follow
        self._tls = tls
        self._new_stream = new_stream
        self.on_left: Callable[[Exception], None] = lambda error: None  # hears why a master was left
        self._awaits_flush = False
        self._is_stopped = False
        self._wake = asyncio.Event()
        self.stream: SlaveStream | None = None  # while connected
        self._link: MasterLink | None = None
        self.trouble: str | None = "not connected yet"
        self._told: str | None = None  # the trouble that the log has
        self._quiet_until = 0.0  # a master that is not found yet is no trouble before

    async def run(self) -> None:
        """Follow until cancelled or stopped."""
        self._quiet_until = self._clock.monotonic() + _QUIET_SECONDS
        while not self._is_stopped:
            address = self._master()
            if address is None:
                self._say("the address of the master's HA port is not known", may_pass=True)
            else:
                await self._follow(address)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._rules.retry_seconds):
                    await self._wake.wait()
            self._wake.clear()

    def look_again(self) -> None:
        """The master may be another one now: do not wait until the pause is over."""
        self._wake.set()

    def leave(self, reason: str) -> None:
        """Leave the master that is followed now; `master` is asked whom to follow next."""
        self._wake.set()
        if self._link is not None:
            self._link.end(MasterLeft(reason))

    def stop(self) -> None:
        """Leave the master, and follow nobody any more."""
        self._is_stopped = True
        self.leave("this slave stops")

    async def _follow(self, address: Address) -> None:
        reason = await self._may_follow() if self._may_follow is not None else None
        if reason is not None:
            self._say(reason)
            return
        if not await self._is_all_safe():
            self._say("the disk does not have all of the log yet, and the first report says where it ends")
            return
        link = MasterLink(self._received)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await asyncio.get_running_loop().create_connection(
                    lambda: link, address.host, address.port, ssl=self._tls
                )
        except (OSError, TimeoutError) as error:
            self._say(f"cannot connect to {address}: {plainly(error)}", may_pass=True)
            return
        if self._is_stopped or self._master() != address:
            link.end(MasterLeft("this slave stops, or has another master now"))
            return
        _logger.info("following master=%s from=%d", address, self._log.end_offset)
        self.trouble = self._told = None
        self._quiet_until = 0.0  # who loses a master says so
        now = self._clock.monotonic()
        self._link, self.stream = link, self._new_stream(self._log, self._rules, now)
        link.write(self.stream.begin(now))
        try:
            await self._stay(link, self.stream)
        except LEFT as error:
            self._say(f"left {address}: {error}")
            self.on_left(error)
        finally:
            self.stream = self._link = None
            link.end(MasterLeft("the slave has left"))

    async def _is_all_safe(self) -> bool:
        """Whether the disk has what a master would take for acknowledged, the end of the log; waits a little."""
        if self._when_flushed is None or self._log.safe_offset >= self._log.end_offset:
            return True
        done = asyncio.Event()
        self._tell_when_flushed(self._when_flushed, lambda _: done.set())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                await done.wait()
        return self._log.safe_offset >= self._log.end_offset

    async def _stay(self, link: MasterLink, stream: SlaveStream) -> None:
        """Report now and then, until the connection ends; raises what LEFT names."""
        while not link.ended.done():
            link.write(stream.due(self._clock.monotonic()))
            await asyncio.wait((link.ended,), timeout=stream.next_look(self._clock.monotonic()))
        link.ended.result()

    def _received(self, data: bytes) -> bytes:
        if self.stream is None:
            raise MasterLeft("the master spoke first")
        report = self.stream.receive(data, self._clock.monotonic())
        self._await_flush()
        return report

    def _await_flush(self) -> None:
        """What the disk has is acknowledged at once; one wait at a time."""
        if self._when_flushed is None or self._awaits_flush or self._log.safe_offset >= self._log.end_offset:
            return
        self._awaits_flush = True
        self._tell_when_flushed(self._when_flushed, self._flushed)

    def _tell_when_flushed(
        self, when_flushed: Callable[[int, Callable[[bool], None]], None], told: Callable[[bool], None]
    ) -> None:
        """Call back in this loop when the disk has all that is in the log now, or cannot have it."""
        loop = asyncio.get_running_loop()

        def flushed(ok: bool) -> None:  # in the flusher's thread
            with contextlib.suppress(RuntimeError):  # the loop has ended, nobody waits
                loop.call_soon_threadsafe(told, ok)

        when_flushed(self._log.end_offset, flushed)

    def _flushed(self, ok: bool) -> None:
        self._awaits_flush = False
        if ok and self.stream is not None and self._link is not None:
            self._link.write(self.stream.progress(self._clock.monotonic()))
            self._await_flush()

    def _say(self, trouble: str, *, may_pass: bool = False) -> None:
        """Also to the log, once; what every start meets only when it does not pass soon."""
        self.trouble = trouble
        is_early = may_pass and self._clock.monotonic() < self._quiet_until
        if trouble == self._told or is_early:
            return
        self._told = trouble
        _logger.log(logging.INFO if self._is_stopped else logging.WARNING, "not following reason=%s", trouble)
