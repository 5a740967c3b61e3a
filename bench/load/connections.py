"""Connections that ask as fast as their pacing says; nothing of an answer is decoded that is not counted."""

import asyncio
import time
from struct import Struct
from typing import Any, cast

import orjson

from bench.load.pacing import Pacing
from bench.load.request_frames import FIRST_OPAQUE, PullFrame, SendFrame
from bench.load.tally import Tally

clock = time.perf_counter  # CLOCK_MONOTONIC: the same in every process of the machine

_SUCCESS = b'"code":0,'
_OPAQUE = b'"opaque":'
_OPAQUE_DIGITS = 10
_NOTHING_NEW = (19, 20, 21)  # of a pull: not found, retry at once, offset moved
_RECORD_SIZE = Struct(">i")


class Connection(asyncio.Protocol):
    """Up to `window` requests in flight; one slot for each, whose number is its opaque's last digits."""

    def __init__(self, tally: Tally, pacing: Pacing, window: int) -> None:
        self._tally = tally
        self._pacing = pacing
        self._started_at = [0.0] * window
        self._free = list(range(window))
        self._window = window
        self._pending = b""
        self._transport: asyncio.WriteTransport | None = None
        self._stopped = False

    @property
    def in_flight(self) -> int:
        """Requests without an answer."""
        return self._window - len(self._free)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._tally.failed(f"connection lost: {error}")
        elif not self._stopped:
            self._tally.failed("the server closed the connection")
        self._stopped = True
        self._transport = None

    def stop(self) -> None:
        """Ask nothing more; answers may still come."""
        if not self._stopped:
            self.ask()  # what is due now is not late yet
            self._stopped = True
            self._tally.overdue += 0 if self._free else self._pacing.overdue(clock())

    def close(self) -> None:
        """Leave, answered or not."""
        self._stopped = True
        self._tally.unanswered += self.in_flight
        if self._transport is not None:
            self._transport.abort()

    def ask(self) -> None:
        """Send what is due as far as slots are free."""
        if self._stopped or self._transport is None:
            return
        now = clock()
        frames: list[bytes] = []
        while self._free and (start := self._pacing.start_of_next(now)) is not None:
            slot = self._free.pop()
            self._started_at[slot] = start
            frames.append(self._frame(slot))
        if frames:
            self._transport.write(b"".join(frames))

    def data_received(self, data: bytes) -> None:
        if self._pending:
            data = self._pending + data
        now, at, size = clock(), 0, len(data)
        seconds: list[float] = []
        messages = 0
        while size - at >= 8:
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            if end > size:
                break
            opaque_at = data.index(_OPAQUE, at + 8, end) + len(_OPAQUE)
            slot = int(data[opaque_at : opaque_at + _OPAQUE_DIGITS]) - FIRST_OPAQUE
            got = self._answered(data, at, end)
            if got >= 0:
                seconds.append(now - self._started_at[slot])
                messages += got
            self._free.append(slot)
            at = end
        self._pending = data[at:]
        self._tally.answered(now, seconds, messages)
        self.ask()

    def _frame(self, slot: int) -> bytes:
        raise NotImplementedError

    def _answered(self, data: bytes, at: int, end: int) -> int:
        """How many messages the frame in data[at:end] acknowledges or brings; -1 when it refuses."""
        raise NotImplementedError

    def _refused(self, data: bytes, at: int) -> int:
        header = _header(data, at)
        self._tally.refused(clock(), header["code"], header.get("remark"))
        return -1


class Sender(Connection):
    """Sends to the queues in turn, as a Java producer does."""

    def __init__(self, tally: Tally, pacing: Pacing, window: int, frames: list[SendFrame], first_key: int) -> None:
        super().__init__(tally, pacing, window)
        self._frames = frames
        self._messages = frames[0].messages
        self._key = first_key
        self._turn = first_key

    def _frame(self, slot: int) -> bytes:
        self._turn = turn = self._turn + 1
        self._key = key = self._key + self._messages
        return self._frames[turn % len(self._frames)].patched(key, int(time.time() * 1000), slot)

    def _answered(self, data: bytes, at: int, end: int) -> int:
        return self._messages if data.find(_SUCCESS, at + 8, end) >= 0 else self._refused(data, at)


class Puller(Connection):
    """Reads one queue from its beginning, and again when it has come to the end; one pull at a time."""

    def __init__(self, tally: Tally, pacing: Pacing, frame: PullFrame, *, repeat: bool) -> None:
        super().__init__(tally, pacing, window=1)
        self._pull = frame
        self._offset = 0
        self._repeat = repeat

    def _frame(self, slot: int) -> bytes:
        return self._pull.patched(self._offset, slot)

    def _answered(self, data: bytes, at: int, end: int) -> int:
        header = _header(data, at)
        if header["code"] not in (0, *_NOTHING_NEW):
            return self._refused(data, at)
        fields = header["extFields"]
        self._offset = int(fields["nextBeginOffset"])
        if self._offset >= int(fields["maxOffset"]):
            self._offset = int(fields["minOffset"])
            if not self._repeat:
                self.stop()
        if header["code"] != 0:
            return -1
        return _records_in(data, at + 8 + (int.from_bytes(data[at + 4 : at + 8], "big") & 0xFFFFFF), end)


def _header(data: bytes, at: int) -> dict[str, Any]:
    size = int.from_bytes(data[at + 4 : at + 8], "big") & 0xFFFFFF
    header: dict[str, Any] = orjson.loads(data[at + 8 : at + 8 + size])
    return header


def _records_in(data: bytes, at: int, end: int) -> int:
    count = 0
    while at < end:
        at += _RECORD_SIZE.unpack_from(data, at)[0]
        count += 1
    return count
