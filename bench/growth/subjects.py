"""Servers with many topics, many connections, or a backlog, under load."""

import asyncio
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench.growth.points import Point
from bench.load.measure import Figures, Timing, measure
from bench.load.own_server import OwnServer, own_server
from bench.load.request_frames import SendFrame
from bench.load.scenario import PULL, SEND, Scenario
from skyrocket.client.admin.admin import Admin
from skyrocket.client.core.settings import ClientSettings
from skyrocket.model.topic_config import TopicConfig

KEPT_FOR_FILES = 1024  # descriptors that a server does not give to connections
_FILL_BATCH = 64
_FILL_RATE = 100_000.0  # messages per second, before it is known
_FILL_SECONDS = 0.1
_PATIENCE_SECONDS = 5.0
_TOPICS_AT_ONCE = 1000
_STOP_SECONDS = 180.0  # each of 10,000 queues has a file that is forced to disk
MESSAGE_BYTES_ON_DISK = 300  # of 128: its record, its queue entry, its part of the index
_SENDS, _PULLS = "sends", "pulls"


def topics(counts: Sequence[int], timing: Timing, work: Path) -> Iterator[Point]:
    """Sends of 64 connections to all topics in turn, each with one queue."""
    for count in counts:
        with own_server(work=work, stop_timeout_s=_STOP_SECONDS) as server:
            scenario = Scenario(SEND, server.broker, "Growth", topics=count, queues=1)
            asyncio.run(_make_topics(server, scenario.topic_names))
            asyncio.run(_send_one_each(server, scenario))
            yield _point("topics", count, _SENDS, measure(scenario, timing, 1, [server.pid]))


async def _make_topics(server: OwnServer, names: Sequence[str]) -> None:
    host, port = server.name_server
    async with Admin(client=ClientSettings(f"{host}:{port}")) as admin:
        for first in range(0, len(names), _TOPICS_AT_ONCE):
            await admin.put_topics([TopicConfig(name, 1, 1) for name in names[first : first + _TOPICS_AT_ONCE]])


async def _send_one_each(server: OwnServer, scenario: Scenario) -> None:
    """Have all queues in use before anything is measured: the first message of a queue costs more."""
    reader, writer = await asyncio.open_connection(*server.broker)
    for first in range(0, scenario.topics, _TOPICS_AT_ONCE):
        names = scenario.topic_names[first : first + _TOPICS_AT_ONCE]
        for number, name in enumerate(names):
            frame = SendFrame(name, 0, 1, scenario.body_size, 1, "")
            writer.write(frame.patched(first + number, time.time_ns() // 1_000_000, number))
        for _ in names:
            answer = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            if b'"code":0,' not in answer:
                raise RuntimeError(f"a first message was refused: {answer!r}")
    writer.close()
    await writer.wait_closed()


def connections(counts: Sequence[int], timing: Timing, work: Path) -> Iterator[Point]:
    """Each has one send under way."""
    room = connections_possible()
    for count in counts:
        if count > room:
            print(f"{count:,} connections: left out, the limit of file descriptors allows {room:,}")
            continue
        with own_server(work=work, stop_timeout_s=_STOP_SECONDS) as server:
            scenario = Scenario(SEND, server.broker, "Growth", connections=count)
            yield _point("connections", count, _SENDS, measure(scenario, timing, 1, [server.pid]))


def connections_possible() -> int:
    """From one address, with the descriptors that a process may have; takes all of them for this process."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return (most - KEPT_FOR_FILES) // 2


def backlog(counts: Sequence[int], timing: Timing, work: Path) -> Iterator[Point]:
    """One server that gets fuller: sends behind the messages that lie there, and pulls from the oldest on."""
    with own_server(work=work, stop_timeout_s=_STOP_SECONDS) as server:
        sends = Scenario(SEND, server.broker, "Growth")
        fill = replace(sends, connections=8, window=2, batch=_FILL_BATCH)
        there, rate, least = 0, _FILL_RATE, _FILL_SECONDS
        for count in counts:
            while there < count:  # what comes in warm-ups is not counted: there are a few more
                seconds = min(max((count - there) / rate, least), max(timing.measured, least))
                filled = measure(fill, Timing(0.0, seconds), 1, [server.pid])
                if filled.messages:
                    there, rate, least = there + filled.messages, filled.rate, _FILL_SECONDS
                elif filled.errors or least > _PATIENCE_SECONDS:
                    raise RuntimeError(f"nothing is taken by the server: {filled.errors}")
                else:
                    least *= 2  # a busy machine: so short a time was over before anything was answered
            after = measure(sends, timing, 1, [server.pid])
            there += after.messages
            yield _point("messages in the store", count, _SENDS, after)
            pulls = Scenario(PULL, server.broker, "Growth", connections=8)
            yield _point("messages in the store", count, _PULLS, measure(pulls, timing, 1, [server.pid]))


def _point(of: str, count: int, doing: str, figures: Figures) -> Point:
    if figures.errors or figures.server_cpu_us is None or figures.anonymous_mb is None:
        raise RuntimeError(f"{count:,} {of}, {doing}: {figures.errors or 'nothing was measured'}")
    return Point(of, doing, count, figures.rate, figures.server_cpu_us, figures.anonymous_mb, figures.p99_ms)
