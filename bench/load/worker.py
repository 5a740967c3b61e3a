"""One process of the load: reads a scenario from its input, connects, asks until told to stop, writes its tally.

parent → worker   the scenario, and the worker's share, as one line of JSON
worker → parent   `ready`, once connected (closed loops begin at once: warm-up)
parent → worker   begin and end of the measured window, as times of the common monotonic clock
worker → parent   the tally
"""

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Any

from bench.load.connections import Connection, Puller, Sender, clock
from bench.load.pacing import ClosedLoop, OpenLoop, Pacing
from bench.load.request_frames import PullFrame, SendFrame
from bench.load.scenario import SEND, Scenario
from bench.load.tally import Tally
from skyrocket.remoting.event_loop import run

TICK_S = 0.001  # how often an open loop looks for what is due
DRAIN_S = 5.0
CONNECT_TIMEOUT_S = 20.0
OPEN_LOOP_WINDOW = 1024  # in flight per connection; what is due beyond waits here and its latency goes on counting
_KEYS_PER_CONNECTION = 1 << 24


@dataclass(frozen=True)
class Share:
    """Connections first … first + count - 1 of all of the scenario's."""

    first: int
    count: int


async def work(scenario: Scenario, share: Share) -> None:
    """The whole life of a worker."""
    tally = Tally()
    connections = await _connect(scenario, share, tally)
    print("ready", flush=True)
    asking = asyncio.create_task(_keep_asking(connections, open_loop=scenario.rate is not None))
    line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    window = json.loads(line)
    tally.begin_at, tally.end_at = window["begin_at"], window["end_at"]
    while clock() < tally.end_at and not asking.done():
        await asyncio.sleep(min(0.05, max(tally.end_at - clock(), 0)))
    asking.cancel()
    for connection in connections:
        connection.stop()
    await _drain(connections)
    for connection in connections:
        connection.close()
    print(json.dumps(tally.as_json()), flush=True)


async def _connect(scenario: Scenario, share: Share, tally: Tally) -> list[Connection]:
    loop = asyncio.get_running_loop()
    frames = [
        SendFrame(
            topic,
            queue_id,
            scenario.queues,
            scenario.body_size,
            scenario.batch,
            scenario.tag,
            scenario.timer_seconds,
        )
        for topic in scenario.topic_names
        for queue_id in range(scenario.queues)
    ]
    connections: list[Connection] = []
    began_at = clock() + 0.1
    for number in range(share.first, share.first + share.count):
        pacing: Pacing = ClosedLoop()
        if scenario.rate is not None:  # the connections' times interleave evenly
            pacing = OpenLoop(began_at + number / scenario.rate, scenario.connections / scenario.rate)
        connection: Connection
        if scenario.kind == SEND:
            window = scenario.window if scenario.rate is None else max(scenario.window, OPEN_LOOP_WINDOW)
            connection = Sender(tally, pacing, window, frames, number * _KEYS_PER_CONNECTION + number)
        else:
            frame = PullFrame(scenario.topic, number % scenario.queues, scenario.pull_at_most)
            connection = Puller(tally, pacing, frame, repeat=scenario.repeat_pulls)
        connections.append(connection)
    async with asyncio.timeout(CONNECT_TIMEOUT_S):
        for connection in connections:
            await loop.create_connection(lambda made=connection: made, *scenario.address)  # type: ignore[misc]
    return connections


async def _keep_asking(connections: list[Connection], *, open_loop: bool) -> None:
    """Start a closed loop; keep an open one going."""
    for connection in connections:
        connection.ask()
    if not open_loop:
        await asyncio.Event().wait()  # from now on answers make room for requests
    while True:
        await asyncio.sleep(TICK_S)
        for connection in connections:
            connection.ask()


async def _drain(connections: list[Connection]) -> None:
    """Give the last requests time to be answered."""
    deadline = clock() + DRAIN_S
    while clock() < deadline and any(connection.in_flight for connection in connections):
        await asyncio.sleep(0.01)


def main() -> None:
    spec: dict[str, Any] = json.loads(sys.stdin.readline())
    host, port = spec["scenario"].pop("address")
    run(work(Scenario(address=(host, port), **spec["scenario"]), Share(**spec["share"])))


if __name__ == "__main__":
    main()
