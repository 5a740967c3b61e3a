"""Reading: slices of 32 messages against memcpy, single messages at random, one queue from end to end."""

import random
from collections.abc import Callable
from pathlib import Path

from bench.store.figures import Figure, at_least
from bench.store.scale import Scale
from bench.store.timing import Round, Series, Stopwatch, cpu_ratio, take_turns, wall_ratio
from bench.store.workload import QUEUES, RECORD_OVERHEAD, TOPIC, Queue, fill, messages, quiet_store
from skyrocket.store.message_store import MessageStore

SECTION = "read"
_SLICE = 32
_CHUNK = 8192

Place = tuple[int, int]  # physical offset and size of a run of records


def measure(scale: Scale, directory: Path) -> list[Figure]:
    return [
        *_slices(scale, directory, [(TOPIC, 0)], "one queue after the other"),
        *_slices(scale, directory, QUEUES, "8 queues mixed in the log"),
        *_at_random(scale, directory),
    ]


# -- slices ----------------------------------------------------------------------------------------------


def _slices(scale: Scale, directory: Path, queues: list[Queue], name: str) -> list[Figure]:
    count = scale.read_log_bytes // (1024 + RECORD_OVERHEAD)
    store = _filled(directory / f"read-{len(queues)}", count, 1024, queues)
    reads = [(queue, at) for queue in queues for at in range(0, store.max_offset(*queue) - _SLICE + 1, _SLICE)]
    places = [_runs(store, queue, at) for queue, at in reads]
    copied, handed_out, joined = take_turns(
        scale.rounds,
        lambda: _copy(store, places),
        lambda: _read(store, reads, join=False),
        lambda: _read(store, reads, join=True),
    )
    store.close()
    figures = [
        Figure(SECTION, f"memcpy of the same bytes, {name}", 1e-9 / copied.cpu, "GB/s", spread=copied.spread),
        _against(copied, handed_out, f"32-message slices of 1 KiB, {name}", len(reads), target=True),
        _against(copied, joined, f"  the same, joined into one body, {name}", len(reads), target=False),
    ]
    if len(queues) == 1:
        per_message = joined.cpu * joined.rounds[0].units / (len(reads) * _SLICE)
        figures.append(Figure(SECTION, "  scan of a queue, 32 at a time, joined", 1 / per_message, "msg/s"))
    return figures


def _against(floor: Series, subject: Series, name: str, reads: int, *, target: bool) -> Figure:
    return Figure(
        SECTION,
        name,
        1e-9 / subject.cpu,
        "GB/s",
        cpu_ratio(floor, subject),
        "memcpy",
        at_least(0.5) if target else None,
        subject.spread,
        {
            "us_per_read": subject.cpu * subject.rounds[0].units / reads * 1e6,
            "memcpy_us_per_read": floor.cpu * floor.rounds[0].units / reads * 1e6,
            "wall_ratio": wall_ratio(floor, subject),
        },
    )


def _filled(root: Path, count: int, body_bytes: int, queues: list[Queue]) -> MessageStore:
    store = quiet_store(root)
    for start in range(0, count, _CHUNK):
        fill(store, messages(min(_CHUNK, count - start), body_bytes, queues))
    store.flush_queues()
    return store


def _runs(store: MessageStore, queue: Queue, offset: int) -> list[Place]:
    """Where the records of one read lie; neighbours are one place."""
    runs: list[Place] = []
    for number in range(offset, offset + _SLICE):
        view = store.get(*queue, number, 1).slices[0]
        at = int.from_bytes(view[28:36], "big")
        if runs and runs[-1][0] + runs[-1][1] == at:
            runs[-1] = (runs[-1][0], runs[-1][1] + len(view))
        else:
            runs.append((at, len(view)))
    return runs


def _copy(store: MessageStore, places: list[list[Place]]) -> Round:
    """memcpy as Python has it: bytes of slices of the same map, at the same places."""
    view = store.commit_log.raw(0, store.commit_log.written_offset)
    assert view is not None
    cuts = [[(at, at + size) for at, size in runs] for runs in places]
    with Stopwatch() as watch:
        for runs in cuts:
            for start, end in runs:
                bytes(view[start:end])
    return watch.round(sum(size for runs in places for _, size in runs))


def _read(store: MessageStore, reads: list[tuple[Queue, int]], *, join: bool) -> Round:
    get, total = store.get, 0
    calls = [(topic, queue_id, offset) for (topic, queue_id), offset in reads]
    with Stopwatch() as watch:
        for topic, queue_id, offset in calls:
            result = get(topic, queue_id, offset, _SLICE)
            total += result.size
            if join:
                result.join()
    return watch.round(total)


# -- at random -------------------------------------------------------------------------------------------


def _at_random(scale: Scale, directory: Path) -> list[Figure]:
    store = _filled(directory / "read-random", scale.random_messages, 4096, QUEUES)
    offsets = [random.randrange(store.max_offset(*QUEUES[0])) for _ in range(scale.random_reads)]
    starts = [_runs_start(store, offset) for offset in offsets]
    by_queue, by_place = take_turns(
        scale.rounds,
        _timed(lambda offset: store.get(TOPIC, 0, offset, 1).join(), offsets),
        _timed(lambda start: bytes(store.by_physical_offset(start) or b""), starts),
    )
    store.close()
    return [
        Figure(SECTION, "random reads of 4 KiB messages by queue offset, joined", 1 / by_queue.cpu, "msg/s",
               target=at_least(8000), spread=by_queue.spread, details={"wall_per_second": 1 / by_queue.wall}),
        Figure(SECTION, "  the same by physical offset", 1 / by_place.cpu, "msg/s", spread=by_place.spread),
    ]  # fmt: skip


def _runs_start(store: MessageStore, offset: int) -> int:
    return int.from_bytes(store.get(TOPIC, 0, offset, 1).slices[0][28:36], "big")


def _timed(work: Callable[[int], object], arguments: list[int]) -> Callable[[], Round]:
    def timed() -> Round:
        with Stopwatch() as watch:
            for argument in arguments:
                work(argument)
        return watch.round(len(arguments))

    return timed
