"""What is watched. Every row is a cost as a multiple of a floor that ran in the same moments: no time, so that another
machine, or another day of this one, may be compared."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.client_speed.beside_bare import beside_bare
from bench.load.measure import Timing, measure
from bench.load.own_server import own_server
from bench.load.scenario import PULL, SEND, Scenario
from bench.store import appending, reading
from bench.store.figures import Figure
from bench.store.scale import QUICK
from skyrocket.remoting.event_loop import run

Rows = dict[str, float]

_QUEUES = 8
_CONNECTIONS = 64


@dataclass(frozen=True)
class Effort:
    """How long is measured."""

    broker_rounds: int
    broker_seconds: float
    client_rounds: int
    store_rounds: int


USUAL = Effort(broker_rounds=5, broker_seconds=2.0, client_rounds=8, store_rounds=12)
SHORT = Effort(broker_rounds=1, broker_seconds=0.5, client_rounds=1, store_rounds=2)  # shows that it works


def broker_rows(effort: Effort, _work: Path) -> Rows:
    """CPU of the broker per message, as a multiple of what the load generator spends on it in the same seconds."""
    ratios: dict[str, list[float]] = {}
    with own_server() as server:
        for _ in range(effort.broker_rounds):
            for name, scenario in _scenarios(server.broker).items():
                figures = measure(scenario, Timing(0.5, effort.broker_seconds), 1, [server.pid])
                assert figures.server_cores is not None  # the process was given
                ratios.setdefault(f"broker: {name}", []).append(figures.server_cores / figures.load_cores)
    return {name: statistics.median(found) for name, found in ratios.items()}


def _scenarios(broker: tuple[str, int]) -> dict[str, Scenario]:
    topic = f"Guard{time.time_ns() // 1_000_000}"
    send = Scenario(SEND, broker, topic, connections=_CONNECTIONS, queues=_QUEUES)
    return {
        "sends": send,
        "pipelined sends": replace(send, window=16),
        "batches of 16": replace(send, batch=16),
        "timers": replace(send, timer_seconds=3600),
        "pulls": Scenario(PULL, broker, topic, connections=_QUEUES, queues=_QUEUES),
    }


def client_rows(effort: Effort, _work: Path) -> Rows:
    """CPU of our Python client per message, as a multiple of a bare protocol loop's."""
    with own_server() as server:
        measured = run(beside_bare(server, 0.5, effort.client_rounds))
    return {f"client: {ours.name}": ours.least_cpu_us / bare.least_cpu_us for _, ours, bare in measured}


def store_rows(effort: Effort, work: Path) -> Rows:
    """CPU of the store per message, as a multiple of packing a head and copying a body, or of a plain copy."""
    scale = replace(QUICK, rounds=effort.store_rounds)
    figures: Sequence[Figure] = (*appending.measure(scale, work), *reading.measure(scale, work))
    compared = [figure for figure in figures if figure.ratio_to in ("the floor", "memcpy") and figure.ratio is not None]
    return {f"store: {figure.name.strip()}": 1 / figure.ratio for figure in compared if figure.ratio}


FAMILIES: dict[str, Callable[[Effort, Path], Rows]] = {
    "store": store_rows,
    "broker": broker_rows,
    "client": client_rows,
}
