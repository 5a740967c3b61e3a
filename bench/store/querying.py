"""Searching: by unique key, by key, and the offset for a time."""

import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from bench.store.figures import Figure
from bench.store.scale import Scale
from bench.store.workload import QUEUES, TOPIC, fill, messages, quiet_store
from skyrocket.format.properties import find_property

SECTION = "query"
_CHUNK = 10_000

T = TypeVar("T")


def measure(scale: Scale, directory: Path) -> list[Figure]:
    store = quiet_store(directory / "query")
    unique: list[str] = []
    keys: list[str] = []
    began = store.clock.now_ms()
    for start in range(0, scale.query_messages, _CHUNK):
        batch = messages(min(_CHUNK, scale.query_messages - start), 128, QUEUES)
        unique += [(find_property(message.properties, b"UNIQ_KEY") or b"").decode() for message in batch]
        keys += [(find_property(message.properties, b"KEYS") or b"").decode() for message in batch]
        fill(store, batch)
    store.flush_queues()
    ended = store.clock.now_ms()
    count = scale.queries
    times = [random.randint(began, ended) for _ in range(count)]
    figures = [
        _latency("by unique key", random.sample(unique, count), lambda key: bool(store.query_unique_key(TOPIC, key))),
        _latency("by key", random.sample(keys, count), lambda key: bool(store.query(TOPIC, key))),
        _latency("offset by time", times, lambda when: store.offset_by_time(TOPIC, 0, when) >= 0),
    ]
    store.close()
    return figures


def _latency(name: str, arguments: Sequence[T], found: Callable[[T], bool]) -> Figure:
    """The median and, in the details, the slow ones. Every query must find something."""
    taken = []
    for argument in arguments:
        began = time.perf_counter()
        ok = found(argument)
        taken.append((time.perf_counter() - began) * 1e6)
        assert ok, argument
    taken.sort()
    return Figure(
        SECTION,
        f"query {name}, median",
        statistics.median(taken),
        "µs",
        details={"p90_us": taken[int(len(taken) * 0.9)], "p99_us": taken[int(len(taken) * 0.99)], "best_us": taken[0]},
    )
