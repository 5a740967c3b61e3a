"""Appending: messages of 128 bytes and 1 KiB against the floor, what costs what, and many queues against few."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.store.figures import Figure, at_least, at_most
from bench.store.floor import REPEATS, Floor
from bench.store.scale import Scale
from bench.store.timing import Round, Series, Stopwatch, cpu_ratio, take_turns, wall_ratio
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
GROUP = 32  # messages that arrive together: what one turn of an event loop reads from its connections
_DISPATCH_SECONDS = 0.001
_PIECE = 4000  # below index_batch_records: the index waits until it is asked


def measure(scale: Scale, directory: Path) -> list[Figure]:
    figures: list[Figure] = []
    for body_bytes, name in ((128, "128-byte"), (1024, "1 KiB")):
        figures += _against_floor(scale, directory, body_bytes, name)
    return [*figures, *_many_against_few(scale, directory)]


# -- against the floor -----------------------------------------------------------------------------------


def _against_floor(scale: Scale, directory: Path, body_bytes: int, name: str) -> list[Figure]:
    count = scale.append_messages
    record_bytes = body_bytes + RECORD_OVERHEAD
    floor = Floor(directory / f"floor-{body_bytes}", REPEATS * count * record_bytes)
    stored = 2 * scale.rounds * count
    store = _warm_store(directory / f"append-{body_bytes}", body_bytes, QUEUES, stored * record_bytes, stored)
    floors, grouped, single = take_turns(
        scale.rounds,
        lambda: floor.append(messages(count, body_bytes)),
        lambda: put_and_dispatch(store, messages(count, body_bytes), grouped=True),
        lambda: put_and_dispatch(store, messages(count, body_bytes), grouped=False),
    )
    floor.close()
    store.close()
    return [
        Figure(SECTION, f"floor, {name} bodies: pack the head, copy the body", 1 / floors.cpu, "msg/s",
               spread=floors.spread, details={"cpu_us": floors.cpu * 1e6, "wall_us": floors.wall * 1e6}),
        _against(floors, grouped, f"append + dispatch, {name} messages, in groups of {GROUP}", target=True),
        _against(floors, single, f"append + dispatch, {name} messages, one by one", target=False),
        *_parts(scale, directory / f"parts-{body_bytes}", body_bytes, name, floors.cpu),
    ]  # fmt: skip


def _against(floor: Series, subject: Series, name: str, *, target: bool) -> Figure:
    details = {
        "cpu_us": subject.cpu * 1e6,
        "wall_us": subject.wall * 1e6,
        "wall_per_second": 1 / subject.wall,
        "wall_ratio": wall_ratio(floor, subject),
    }
    bound = at_least(0.25) if target else None
    ratio = cpu_ratio(floor, subject)
    return Figure(SECTION, name, 1 / subject.cpu, "msg/s", ratio, "the floor", bound, subject.spread, details)


def _warm_store(root: Path, body_bytes: int, queues: Sequence[Queue], log_bytes: int, entries: int) -> MessageStore:
    store = quiet_store(root)
    fill(store, messages(max(len(queues), 64), body_bytes, queues))
    warm_log(store, log_bytes)
    warm_index(store, entries)
    return store


def put_and_dispatch(store: MessageStore, batch: Sequence[PutMessage], *, grouped: bool) -> Round:
    """As a broker does: dispatch when a millisecond has passed, and at the end all that is left."""
    put, put_group, clock = store.put, store.intake.put_group, time.perf_counter
    with Stopwatch() as watch:
        due = clock() + _DISPATCH_SECONDS
        for start in range(0, len(batch), GROUP):
            group = batch[start : start + GROUP]
            if grouped:
                put_group(group)
            else:
                for message in group:
                    put(message)
            if clock() >= due:
                store.dispatch()
                due = clock() + _DISPATCH_SECONDS
        settle(store)
    assert store.dispatch_lag_bytes == 0
    return watch.round(len(batch))


# -- what costs what -------------------------------------------------------------------------------------


def _parts(scale: Scale, root: Path, body_bytes: int, name: str, floor_seconds: float) -> list[Figure]:
    """The same work taken apart: all puts, then all queues, then the index."""
    store = quiet_store(root, index_batch_delay_ms=3_600_000, index_batch_records=_PIECE + 1)
    fill(store, messages(_PIECE, body_bytes))
    pieces = 2 * scale.rounds
    warm_log(store, pieces * _PIECE * (body_bytes + RECORD_OVERHEAD))
    warm_index(store, pieces * _PIECE)
    index = store.index
    assert index is not None

    def put_each(batch: list[PutMessage]) -> None:
        put = store.put
        for message in batch:
            put(message)

    def put_groups(batch: list[PutMessage]) -> None:
        put_group = store.intake.put_group
        for start in range(0, len(batch), GROUP):
            put_group(batch[start : start + GROUP])

    def next_batch() -> list[PutMessage]:
        settle(store)
        return messages(_PIECE, body_bytes)

    series = take_turns(
        scale.rounds,
        lambda: _timed(put_each, next_batch()),
        lambda: _timed(put_groups, next_batch()),
        lambda: _timed(lambda _: store.dispatch()),
        lambda: _timed(lambda _: index.catch_up()),
    )
    store.close()
    names = ("put one by one", f"put in groups of {GROUP}", "dispatch to queues", "dispatch to index")
    return [
        Figure(SECTION, f"  of it {part}, {name}", each.cpu * 1e6, "µs/msg", each.cpu / floor_seconds,
               "the floor's time", spread=each.spread)
        for part, each in zip(names, series, strict=True)
    ]  # fmt: skip


def _timed(work: Callable[[list[PutMessage]], object], batch: list[PutMessage] | None = None) -> Round:
    with Stopwatch() as watch:
        work(batch or [])
    return watch.round(_PIECE)


# -- many queues -----------------------------------------------------------------------------------------


def _many_against_few(scale: Scale, directory: Path) -> list[Figure]:
    count = scale.many_queue_messages
    few, many = QUEUES, many_queues(scale.many_queues)
    log_bytes = scale.rounds * count * (128 + RECORD_OVERHEAD)
    stores = [
        _warm_store(directory / name, 128, queues, log_bytes, scale.rounds * count)
        for name, queues in (("few-queues", few), ("many-queues", many))
    ]
    with_few, with_many = take_turns(
        scale.rounds,
        lambda: put_and_dispatch(stores[0], messages(count, 128, few), grouped=True),
        lambda: put_and_dispatch(stores[1], messages(count, 128, many), grouped=True),
    )
    with Stopwatch() as watch:
        stores[1].flush_queues()
    flushed = watch.round(1)
    for store in stores:
        store.close()
    return [
        Figure(SECTION, f"{scale.many_queues:,} queues, cost against 8 queues", 1 / with_many.cpu, "msg/s",
               cpu_ratio(with_many, with_few) - 1, "more time than with 8", at_most(0.10), with_many.spread,
               {"few_queues_per_second": 1 / with_few.cpu, "few_queues_spread": with_few.spread,
                "wall_ratio": wall_ratio(with_many, with_few) - 1}),
        Figure(SECTION, f"  write {scale.many_queues:,} queues to disk for the first time (then once a minute)",
               flushed.wall, "s", details={"cpu_seconds": flushed.cpu_seconds}),
    ]  # fmt: skip
