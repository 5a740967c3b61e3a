"""A producer that sends every 50 ms and a consumer that waits for its messages, in a process of their own.

    HonestClient ──▶ python -m tests.attack.honest ADDRESS ──▶ server
        "figures" ──▶ what happened since the last time, as one line of JSON

A send begins when its time has come, whether the one before was answered or not: a server that stands still for a
second spoils twenty sends, not one. A wait counts from the moment in which the request leaves.
"""

import asyncio
import contextlib
import json
import math
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Final, Self

from skyrocket.errors import SkyrocketError
from skyrocket.format.record import decode_records
from skyrocket.protocol.requests.messaging import SendMessageV2
from skyrocket.protocol.requests.pulling import PullMessage
from skyrocket.remoting.client import ClientSettings, RemotingClient
from skyrocket.remoting.event_loop import run

PAUSE_SECONDS: Final = 0.05
TIMEOUT_SECONDS: Final = 10.0
HELD_SECONDS: Final = 5.0
STRICT_MS: Final = 200.0
# In `make test` the machine may be busy with anything: much more than it needs, much less than an attack costs.
LOOSE_MS, LOOSE_FACTOR = 3000.0, 20.0

_TOPIC, _GROUP = "HonestTopic", "HonestGroup"
_PULL_CODES: Final = frozenset({0, 19, 20, 21})


@dataclass(slots=True)
class Figures:
    """What the honest client met in some time."""

    sends_ms: list[float] = field(default_factory=list)  # from a send to its answer
    arrivals_ms: list[float] = field(default_factory=list)  # from a send to the consumer
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        sends, arrivals = self.sends_ms, self.arrivals_ms
        return (
            f"{len(sends)} sends: p50 {percentile(sends, 50):.1f} p99 {percentile(sends, 99):.1f} "
            f"max {percentile(sends, 100):.1f} ms, {len(arrivals)} arrivals: p99 {percentile(arrivals, 99):.1f} ms, "
            f"{len(self.failures)} failures"
        )

    @property
    def p99_ms(self) -> float:
        """Of sends."""
        return percentile(self.sends_ms, 99)

    @property
    def arrivals_p99_ms(self) -> float:
        return percentile(self.arrivals_ms, 99)

    def must_be_served(
        self, quiet: "Figures", what: str, *, strict: bool = False, strict_ms: float = STRICT_MS
    ) -> None:
        """Print the figures; fail when a request failed or waited for much longer than in quiet times."""
        print(f"\n{what}\n  quiet        {quiet}\n  under attack {self}")  # noqa: T201
        assert self.sends_ms, f"{what}: nothing was sent"
        assert not self.failures, f"{what}: {self.failures[:5]}"
        for name, waited_ms, usual_ms in (
            ("sends", self.p99_ms, quiet.p99_ms),
            ("arrivals", self.arrivals_p99_ms, quiet.arrivals_p99_ms),
        ):
            allowed_ms = strict_ms if strict else max(LOOSE_MS, LOOSE_FACTOR * usual_ms)
            assert waited_ms < allowed_ms, f"{what}: p99 of {name} {waited_ms:.0f} ms, allowed {allowed_ms:.0f} ms"


def percentile(values: list[float], percent: float) -> float:
    """The value that so many percent do not exceed."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


class HonestClient:
    """The process, as a test sees it."""

    def __init__(self, broker: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.honest", broker],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", "the honest client could not begin"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def during(self, seconds: float) -> Figures:
        """Let time pass: what was met in it."""
        self.figures()
        time.sleep(seconds)
        return self.figures()

    def figures(self) -> Figures:
        """What was met since this was last asked."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("figures\n")
        self._process.stdin.flush()
        return Figures(**json.loads(self._process.stdout.readline()))


class _Work:
    """Sends, pulls and what they met."""

    def __init__(self, client: RemotingClient, broker: str) -> None:
        self._client = client
        self._broker = broker
        self._sent_at: dict[bytes, float] = {}
        self.figures = Figures()

    async def produce(self) -> None:
        async with asyncio.TaskGroup() as sends:
            number = 0
            while True:
                sends.create_task(self._send(number))
                number += 1
                await asyncio.sleep(PAUSE_SECONDS)

    async def _send(self, number: int) -> None:
        body = b"honest %d" % number
        self._sent_at[body] = began = time.perf_counter()
        try:
            await self._client.call(self._broker, _message(), body, timeout_seconds=TIMEOUT_SECONDS)
        except SkyrocketError as error:
            self.figures.failures.append(f"send: {error}")
            self._sent_at.pop(body, None)
        self.figures.sends_ms.append((time.perf_counter() - began) * 1000)

    async def consume(self) -> None:
        offset = 0
        while True:
            try:
                reply = await self._client.call(
                    self._broker,
                    _pull(offset),
                    accepted=_PULL_CODES,
                    timeout_seconds=HELD_SECONDS + TIMEOUT_SECONDS,
                )
            except SkyrocketError as error:
                self.figures.failures.append(f"pull: {error}")
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            offset = reply.header.next_begin_offset
            for record in decode_records(reply.body):
                began = self._sent_at.pop(bytes(record.body), None)
                if began is not None:
                    self.figures.arrivals_ms.append((time.perf_counter() - began) * 1000)


def _message() -> SendMessageV2:
    return SendMessageV2(
        producer_group="HonestProducers",
        topic=_TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=1,
        queue_id=0,
        sys_flag=0,
        born_timestamp=int(time.time() * 1000),
        flag=0,
        properties="",
        reconsume_times=0,
    )


def _pull(offset: int) -> PullMessage:
    return PullMessage(
        consumer_group=_GROUP,
        topic=_TOPIC,
        queue_id=0,
        queue_offset=offset,
        max_msg_nums=32,
        sys_flag=0x4 | 0x2,
        commit_offset=0,
        suspend_timeout_millis=int(HELD_SECONDS * 1000),
        subscription="*",
        expression_type="TAG",
    )


async def _serve(broker: str) -> None:
    async with RemotingClient(ClientSettings(closes_on_timeout=False)) as client:
        work = _Work(client, broker)
        await client.call(broker, _message(), b"first", timeout_seconds=TIMEOUT_SECONDS)  # makes the topic
        tasks = [asyncio.create_task(work.produce()), asyncio.create_task(work.consume())]
        print("ready", flush=True)  # noqa: T201
        while await asyncio.to_thread(sys.stdin.readline):
            figures, work.figures = work.figures, Figures()
            print(json.dumps({name: getattr(figures, name) for name in Figures.__slots__}), flush=True)  # noqa: T201
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        run(_serve(sys.argv[1]))
