"""Appending: messages of 128 bytes and 1 KiB against the floor, what costs what, and many queues against few."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.store.figures import Figure, at_least, at_most
from bench.store.floor import Floor
from bench.store.scale import Scale
from bench.store.timing import Round, Series, Stopwatch, take_turns
from bench.store.workload import (
    QUEUES,
    RECORD_OVERHEAD,
    Queue,
    fill,
    many_queues,
    messages,
    quiet_store,
    settle,
    warm_index,
    warm_log,
)
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore

SECTION = "append"
_DISPATCH_SECONDS = 0.001
_PUTS_PER_LOOK = 32
_PIECE = 4000  # below index_batch_records: the index waits until it is asked


def measure(scale: Scale, directory: Path) -> list[Figure]:
    figures: list[Figure] = []
    for body_bytes, name in ((128, "128-byte"), (1024, "1 KiB")):
        figures += _against_floor(scale, directory, body_bytes, name)
    return [*figures, *_many_against_few(scale, directory)]


# -- against the floor -----------------------------------------------------------------------------------


def _against_floor(scale: Scale, directory: Path, body_bytes: int, name: str) -> list[Figure]:
    count = scale.append_messages
    written = (scale.rounds + 1) * count * (body_bytes + RECORD_OVERHEAD)
    floor = Floor(directory / f"floor-{body_bytes}", written)
    store = _warm_store(directory / f"append-{body_bytes}", body_bytes, QUEUES, written, count * scale.rounds)
    parts = _Parts(directory / f"parts-{body_bytes}", body_bytes, scale)
    batch: list[PutMessage] = []

    def bare() -> Round:
        batch[:] = messages(count, body_bytes)
        return floor.append(batch)

    floors, stored = take_turns(scale.rounds, bare, lambda: put_and_dispatch(store, batch))
    puts, queue_dispatch, index_dispatch = parts.measure(scale.rounds)
    floor.close()
    store.close()
    return [
        Figure(SECTION, f"floor, {name} bodies: pack the head, copy the body", 1 / floors.cpu, "msg/s",
               spread=floors.spread, details=_microseconds(cpu=floors.cpu, wall=floors.wall)),
        Figure(SECTION, f"append + dispatch, {name} messages", 1 / stored.cpu, "msg/s", floors.cpu / stored.cpu,
               "the floor", at_least(0.25), stored.spread,
               {**_microseconds(cpu=stored.cpu, wall=stored.wall), "wall_ratio": floors.wall / stored.wall}),
        _part(f"  of it put, {name}", puts.cpu, floors.cpu, puts.spread),
        _part(f"  of it dispatch to queues, {name}", queue_dispatch.cpu, floors.cpu, queue_dispatch.spread),
        _part(f"  of it dispatch to index, {name}", index_dispatch.cpu, floors.cpu, index_dispatch.spread),
    ]  # fmt: skip


def _part(name: str, seconds: float, floor_seconds: float, spread: float) -> Figure:
    return Figure(SECTION, name, seconds * 1e6, "µs/msg", seconds / floor_seconds, "the floor's time", spread=spread)


def _microseconds(**seconds: float) -> dict[str, float]:
    return {f"{name}_us": value * 1e6 for name, value in seconds.items()}


def _warm_store(root: Path, body_bytes: int, queues: Sequence[Queue], log_bytes: int, entries: int) -> MessageStore:
    store = quiet_store(root)
    fill(store, messages(max(len(queues), 64), body_bytes, queues))
    warm_log(store, log_bytes)
    warm_index(store, entries)
    return store


def put_and_dispatch(store: MessageStore, batch: Sequence[PutMessage]) -> Round:
    """As a broker does: dispatch when a millisecond has passed, and at the end all that is left."""
    put, clock = store.put, time.perf_counter
    with Stopwatch() as watch:
        due = clock() + _DISPATCH_SECONDS
        for start in range(0, len(batch), _PUTS_PER_LOOK):
            for message in batch[start : start + _PUTS_PER_LOOK]:
                put(message)
            if clock() >= due:
                store.dispatch()
                due = clock() + _DISPATCH_SECONDS
        settle(store)
    assert store.dispatch_lag_bytes == 0
    return watch.round(len(batch))


class _Parts:
    """The same work taken apart: all puts, then all queues, then the index."""

    def __init__(self, root: Path, body_bytes: int, scale: Scale) -> None:
        self._body_bytes = body_bytes
        pieces = scale.rounds + 1
        self._store = quiet_store(root, index_batch_delay_ms=3_600_000, index_batch_records=_PIECE + 1)
        fill(self._store, messages(_PIECE, body_bytes))
        warm_log(self._store, pieces * _PIECE * (body_bytes + RECORD_OVERHEAD))
        warm_index(self._store, pieces * _PIECE)

    def measure(self, rounds: int) -> list[Series]:
        series = take_turns(rounds, self._put, self._timed(self._store.dispatch), self._timed(self._index))
        self._store.close()
        return series

    def _put(self) -> Round:
        batch, put = messages(_PIECE, self._body_bytes), self._store.put
        with Stopwatch() as watch:
            for message in batch:
                put(message)
        return watch.round(_PIECE)

    def _index(self) -> None:
        assert self._store.index is not None
        assert self._store.index.backlog == _PIECE
        self._store.index.catch_up()

    def _timed(self, work: Callable[[], object]) -> Callable[[], Round]:
        def timed() -> Round:
            with Stopwatch() as watch:
                work()
            return watch.round(_PIECE)

        return timed


# -- many queues -----------------------------------------------------------------------------------------


def _many_against_few(scale: Scale, directory: Path) -> list[Figure]:
    count = scale.many_queue_messages
    few, many = QUEUES, many_queues(scale.many_queues)
    log_bytes = (scale.rounds + 1) * count * (128 + RECORD_OVERHEAD)
    stores = [
        _warm_store(directory / name, 128, queues, log_bytes, scale.rounds * count)
        for name, queues in (("few-queues", few), ("many-queues", many))
    ]
    with_few, with_many = take_turns(
        scale.rounds,
        lambda: put_and_dispatch(stores[0], messages(count, 128, few)),
        lambda: put_and_dispatch(stores[1], messages(count, 128, many)),
    )
    with Stopwatch() as watch:
        stores[1].flush_queues()
    flushed = watch.round(1)
    for store in stores:
        store.close()
    return [
        Figure(SECTION, f"{scale.many_queues:,} queues, cost against 8 queues", 1 / with_many.cpu, "msg/s",
               with_many.cpu / with_few.cpu - 1, "more time than with 8", at_most(0.10), with_many.spread,
               {"few_queues_per_second": 1 / with_few.cpu, "few_queues_spread": with_few.spread,
                "wall_ratio": with_many.wall / with_few.wall - 1}),
        Figure(SECTION, f"  write out {scale.many_queues:,} queues for the first time (then once a minute)",
               flushed.wall, "s", details={"cpu_seconds": flushed.cpu_seconds}),
    ]  # fmt: skip
