"""Whatever bytes come to a broker and a name server: the real servers' answers, bounded memory, others unharmed."""

import asyncio
import contextlib
import random
import re
import struct
import time
from pathlib import Path

from skyrocket.format.record import decode_records
from skyrocket.protocol.command import ONEWAY_FLAG, RemotingCommand
from skyrocket.protocol.frames import encode
from skyrocket.remoting.client import RemotingClient
from tests.cluster.broker.broker_fixture import (
    PULL_CODES,
    message,
    pull_request,
)
from tests.golden_wire import all_frames
from tests.http_get import get
from tests.integration.measured import MeasuredProgram, measured
from tests.ports import free_port

# ── what the real servers answered ───────────────────────────────────────────────────────────────────────────────────


# ── 100,000 frames to a running program ──────────────────────────────────────────────────────────────────────────────

FRAMES = 100_000
PER_CONNECTION, SOUND = 40, 30
MAX_GROWTH_MB = 60
# What an open broker does when it is told to is no harm done by bad input: those are sent with nonsense alone.
_OBEYED = frozenset({17, 25, 26, 50, 51, 104, 200, 205, 206, 207, 215, 216, 217, 218, 318, 325, 327, 401, 2001, 2002})


class HostileFrames:
    """Frames of many kinds, none of them what it should be; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        captured = (f for f in all_frames() if not f.is_response and f.file.startswith(("java", "go-", "node-", "bad")))
        self._captured = [f.raw for f in captured if f.header.get("code") not in _OBEYED and len(f.raw) < 5000][:2000]
        self._sound = (
            self._unknown_code,
            self._known_code_with_nonsense,
            self._unwanted_answer,
            self._binary_header,
        )
        self._broken = (self._noise, self._flipped, self._flipped, self._cut, self._wrong_lengths)

    def some(self, count: int) -> list[bytes]:
        """First frames that are frames at least, so that they get to a handler; then those that end a connection."""
        return [
            self._rng.choice(self._sound if number % PER_CONNECTION < SOUND else self._broken)()
            for number in range(count)
        ]

    def _noise(self) -> bytes:
        noise = self._rng.randbytes(self._rng.randrange(1, 200))
        return struct.pack(">ii", len(noise) + 4, len(noise)) + noise

    def _unknown_code(self) -> bytes:
        flag = ONEWAY_FLAG if self._rng.random() < 0.3 else 0
        return encode(RemotingCommand(self._rng.randrange(-(1 << 31), 1 << 31), self._rng.randrange(1 << 31), flag))

    def _known_code_with_nonsense(self) -> bytes:
        names = ("topic", "queueId", "consumerGroup", "b", "e", "offset", "key", "i", "a", "group", "sysFlag")
        fields = {self._rng.choice(names): self._text() for _ in range(self._rng.randrange(6))}
        code = self._rng.choice((10, 310, 320, 11, 361, 12, 14, 15, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 41, 42, 46))
        return encode(RemotingCommand(code, 7, 0, fields, self._rng.randbytes(self._rng.randrange(80))))

    def _text(self) -> str:
        return self._rng.choice(("", "-1", "9" * 30, "null", "%RETRY%", "ü" * 40, "a/../b", "0", "x" * 300, "{}"))

    def _unwanted_answer(self) -> bytes:
        return encode(RemotingCommand(self._rng.randrange(300), self._rng.randrange(1 << 31), 1, body=b"unasked"))

    def _binary_header(self) -> bytes:
        fields = {self._rng.randbytes(4).hex(): self._text() for _ in range(self._rng.randrange(9))}
        command = RemotingCommand(self._rng.randrange(400), 9, 0, fields).as_binary()
        return encode(command) if command.code not in _OBEYED else self._noise()

    def _flipped(self) -> bytes:
        frame = bytearray(self._rng.choice(self._captured))
        for _ in range(self._rng.randrange(1, 4)):
            at = self._rng.randrange(8, len(frame))  # lengths stay: the connection is to live on
            frame[at] ^= 1 << self._rng.randrange(8)
        return bytes(frame)

    def _cut(self) -> bytes:
        frame = self._rng.choice(self._captured)
        shorter = frame[8 : self._rng.randrange(9, len(frame) + 1)]
        return struct.pack(">ii", len(shorter) + 4, len(shorter)) + shorter

    def _wrong_lengths(self) -> bytes:
        if self._rng.random() < 0.9:
            return self._noise()
        sizes = (-1, 0, 3, 1 << 24, (1 << 31) - 1, self._rng.randrange(-(1 << 31), 1 << 31))
        return struct.pack(">ii", self._rng.choice(sizes), self._rng.choice(sizes)) + b"rest"


async def attack(port: int, frames: list[bytes]) -> int:
    """One connection after the other until all frames are sent; how many were sent."""
    sent = 0
    while sent < len(frames):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        part = frames[sent : sent + PER_CONNECTION]
        with contextlib.suppress(ConnectionError):
            writer.write(b"".join(part))
            await asyncio.wait_for(writer.drain(), 10)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1 << 20), 1.0)  # so that it was looked at before we go
        writer.transport.abort()
        sent += len(part)
    return sent


async def trickle(port: int, stop: asyncio.Event) -> None:
    """A slow loris: a frame begun, and a byte now and then."""
    with contextlib.suppress(ConnectionError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(struct.pack(">ii", 1 << 20, 100))
        while not stop.is_set() and not writer.is_closing():
            writer.write(b"{")
            await asyncio.sleep(0.5)
        writer.transport.abort()


async def honest_work(address: str, stop: asyncio.Event) -> tuple[int, float]:
    """A producer and a consumer; how many messages arrived, in order, and the slowest round in seconds."""
    count, slowest = 0, 0.0
    async with RemotingClient() as client:
        while not stop.is_set() or count < 20:
            began = time.monotonic()
            body = b"honest %d" % count
            await client.call(address, message("Honest"), body, timeout_seconds=10)
            request = pull_request(count, suspend_ms=5000, topic="Honest")
            pulled = await client.call(address, request, accepted=PULL_CODES, timeout_seconds=10)
            assert [record.body for record in decode_records(pulled.body)] == [body]
            slowest = max(slowest, time.monotonic() - began)
            count += 1
            await asyncio.sleep(0.02)
    return count, slowest


async def test_100_000_hostile_frames_leave_memory_bounded_and_others_unharmed(tmp_path: Path) -> None:
    async def main(running: MeasuredProgram) -> None:
        stop = asyncio.Event()
        address = f"127.0.0.1:{running.broker}"
        hostile = HostileFrames(20261116)
        ports = [running.broker, running.broker, running.broker - 2, running.name_server]
        work = asyncio.create_task(honest_work(address, stop))
        lorises = [asyncio.create_task(trickle(port, stop)) for port in (*ports, metrics_port) for _ in range(20)]
        over_http = asyncio.gather(*(attack(metrics_port, hostile.some(PER_CONNECTION)) for _ in range(30)))
        warm_up = await asyncio.gather(*(attack(port, hostile.some(1000)) for port in ports))
        before = running.resident_mb
        rest = FRAMES - sum(warm_up)
        began = time.monotonic()
        shares = [rest // 8] * 7 + [rest - 7 * (rest // 8)]
        sent = await asyncio.gather(
            *(attack(ports[number % 4], hostile.some(share)) for number, share in enumerate(shares))
        )
        seconds = time.monotonic() - began
        after = running.resident_mb
        stop.set()
        count, slowest = await work
        await asyncio.gather(*lorises)
        await over_http
        assert sum(warm_up) + sum(sent) == FRAMES
        assert running.process.poll() is None, (tmp_path / "log").read_text()[-2000:]
        status, page = await asyncio.to_thread(get, metrics_port, "/metrics")
        assert status == 200
        handled = sum(map(int, re.findall(r"^skyrocket_requests_total.* (\d+)$", page, re.MULTILINE)))
        assert handled > FRAMES // 4, handled  # those that came to a handler of the broker
        report = f"{FRAMES} frames in {seconds:.1f} s, {before:.0f} → {after:.0f} MB, {count} honest rounds"
        print(f"\n{report}, slowest {slowest * 1000:.0f} ms")  # noqa: T201
        assert after - before < MAX_GROWTH_MB, report
        assert slowest < 10.0, report  # the time-out of their calls
        assert "Traceback" not in (tmp_path / "log").read_text()

    metrics_port = free_port()
    with measured(tmp_path, "metricsExporterType=PROM", f"metricsPromExporterPort={metrics_port}") as running:
        await main(running)
