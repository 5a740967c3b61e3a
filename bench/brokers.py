"""What more processes give: `python -m bench.brokers` compares `--brokers N` with one broker.

The load must not be the limit, so it is as light as it can be: the bytes of the requests are made once and sent again
and again, answers are counted and not looked at. Messages of one connection are all alike; a broker has its usual work.
One and several take turns; the ratio is the median of the rounds'.
"""

import argparse
import asyncio
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.load.own_server import WORK, own_server
from bench.load.request_frames import SendFrame
from bench.load.server_usage import cpu_seconds

TARGET: Final = 1.7  # of two processes on two cores
_QUEUES: Final = 8
_ANSWER: Final = b'"opaque":'
_SUCCESS: Final = b'"code":0,'


class Repeater(asyncio.Protocol):
    """Sends the same requests again when all of them have been answered."""

    def __init__(self, requests: bytes, count: int, messages: int) -> None:
        self.stored = 0
        self.refused = 0
        self._requests = requests
        self._count = count
        self._messages = messages
        self._left = 0
        self._end = b""  # of what was read: an answer's mark may be cut
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        self._send()

    def _send(self) -> None:
        assert self._transport is not None
        self._left = self._count
        self._transport.write(self._requests)

    def data_received(self, data: bytes) -> None:
        data = self._end + data
        answers = data.count(_ANSWER)
        self._end = data[-len(_ANSWER) + 1 :]
        self._left -= answers
        self.stored += answers * self._messages
        if data.find(_SUCCESS) < 0 and answers:
            self.refused += answers
        if self._left == 0:
            self._send()


@dataclass(frozen=True)
class Round:
    """What so many brokers took together."""

    brokers: int
    rate: float
    server_cores: float
    load_cores: float


async def _load(
    brokers: tuple[tuple[str, int], ...], batch: int, seconds: float, connections: int, window: int
) -> float:
    loop = asyncio.get_running_loop()
    repeaters: list[Repeater] = []
    for host, port in brokers:
        for number in range(connections):
            frames = [SendFrame("Brokers", number % _QUEUES, _QUEUES, 128, batch, "")] * window
            requests = b"".join(
                frame.patched(number * 10_000 + slot * batch, int(time.time() * 1000), slot)
                for slot, frame in enumerate(frames)
            )

            def made(requests: bytes = requests) -> Repeater:
                return Repeater(requests, window, batch)

            _, repeater = await loop.create_connection(made, host, port)
            repeaters.append(repeater)
    await asyncio.sleep(1.0)
    before, began = sum(each.stored for each in repeaters), time.perf_counter()
    await asyncio.sleep(seconds)
    rate = (sum(each.stored for each in repeaters) - before) / (time.perf_counter() - began)
    refused = sum(each.refused for each in repeaters)
    if refused:
        raise SystemExit(f"{refused} sends were refused: nothing was measured")
    return rate


def measure(count: int, batch: int, seconds: float, connections: int, window: int, work: Path) -> Round:
    """One server with so many brokers."""
    with own_server(work=work, stop_timeout_s=60, brokers=count) as server:
        pids = _family(server.pid)
        before, own, began = cpu_seconds(pids), time.process_time(), time.perf_counter()
        rate = asyncio.run(_load(server.brokers, batch, seconds, connections // count, window))
        took = time.perf_counter() - began
        return Round(count, rate, (cpu_seconds(pids) - before) / took, (time.process_time() - own) / took)


def _family(pid: int) -> list[int]:
    """A process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in _family(int(child)))]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.brokers", description=__doc__)
    parser.add_argument("--brokers", type=int, default=os.cpu_count() or 2, help="how many beside one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--connections", type=int, default=8, help="of all brokers together")
    parser.add_argument("--window", type=int, default=128, help="requests in flight on each")
    parser.add_argument("--batch", type=int, default=1, help="messages of a request")
    parser.add_argument("--work", type=Path, default=WORK)
    options = parser.parse_args()
    ratios = []
    for _ in range(options.rounds):
        found = [
            measure(count, options.batch, options.seconds, options.connections, options.window, options.work)
            for count in (1, options.brokers)
        ]
        for each in found:
            print(
                f"{each.brokers:2} broker(s): {each.rate:9,.0f} messages/s, servers {each.server_cores:.2f} cores, "
                f"load {each.load_cores:.2f}",
                flush=True,
            )
        ratios.append(found[1].rate / found[0].rate)
    ratio = statistics.median(ratios)
    wanted = TARGET if options.brokers == 2 else 0.0
    print(f"{options.brokers} brokers take {ratio:.2f} times as much as one" + f" (wanted: {wanted})" * bool(wanted))
    sys.exit(ratio < wanted)


if __name__ == "__main__":
    main()
