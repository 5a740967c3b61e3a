"""Group commit: 64 writers who wait for the disk together, against one who waits for each message alone."""

import queue
import threading
import time
from pathlib import Path
from queue import SimpleQueue

from bench.store.figures import Figure, at_least
from bench.store.scale import Scale
from bench.store.timing import Round, Stopwatch, take_turns, wall_ratio
from bench.store.workload import fill, messages, quiet_store, warm_log
from skyrocket.config.sections import FlushDiskType
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore

SECTION = "group commit"
WRITERS = 64
_BODY_BYTES = 1024
_WARM_BYTES = 64 << 20


def measure(scale: Scale, directory: Path) -> list[Figure]:
    store = quiet_store(directory / "group-commit", flush_disk_type=FlushDiskType.SYNC_FLUSH)
    batch = messages(WRITERS, _BODY_BYTES)
    fill(store, batch)
    warm_log(store, _WARM_BYTES)
    store.flush()
    seconds = scale.commit_seconds
    alone, threads, callbacks = take_turns(
        scale.commit_rounds,
        lambda: _one_fsync_each(store, batch, seconds),
        lambda: _waiting_threads(store, batch, seconds),
        lambda: _callbacks(store, batch, seconds),
    )
    store.close()
    return [
        Figure(SECTION, "one fsync per message, one writer", 1 / alone.wall, "msg/s", spread=alone.wall_spread,
               details={"fsync_ms": alone.wall * 1000}),
        Figure(SECTION, f"{WRITERS} threads wait for the disk (wall time)", 1 / threads.wall, "msg/s",
               wall_ratio(alone, threads), "one fsync per message", at_least(20), threads.wall_spread),
        Figure(SECTION, f"{WRITERS} writers of an event loop (wall time)", 1 / callbacks.wall, "msg/s",
               wall_ratio(alone, callbacks), "one fsync per message", at_least(20), callbacks.wall_spread),
    ]  # fmt: skip


def _one_fsync_each(store: MessageStore, batch: list[PutMessage], seconds: float) -> Round:
    """The best that one writer can do: it forces the log itself, and waits for no other thread."""
    count = 0
    with Stopwatch() as watch:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            result = store.put(batch[count % WRITERS])
            assert result.ok
            assert store.flush()
            count += 1
    return watch.round(count)


def _waiting_threads(store: MessageStore, batch: list[PutMessage], seconds: float) -> Round:
    counts = [0] * WRITERS
    start = threading.Barrier(WRITERS + 1)

    def write(number: int) -> None:
        message = batch[number]
        answers: SimpleQueue[bool] = SimpleQueue()
        start.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            result = store.put(message)
            assert result.ok, result.remark
            store.flusher.when_flushed(result.end_offset, answers.put)
            assert answers.get(timeout=60)
            counts[number] += 1

    threads = [threading.Thread(target=write, args=(number,), daemon=True) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    start.wait()
    with Stopwatch() as watch:
        for thread in threads:
            thread.join()
    return watch.round(sum(counts))


def _callbacks(store: MessageStore, batch: list[PutMessage], seconds: float) -> Round:
    """One thread serves all writers: those who heard that the disk has their messages send the next, together."""
    ready: queue.SimpleQueue[list[PutMessage]] = queue.SimpleQueue()
    ready.put(batch)
    count = 0
    with Stopwatch() as watch:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            group = ready.get()
            while not ready.empty():
                group = group + ready.get()
            results = store.intake.put_group(group)
            store.flusher.when_flushed(results[-1].end_offset, lambda ok, group=group: ready.put(group))  # type: ignore[misc]
            count += len(group)
        ready.get()
    return watch.round(count)
