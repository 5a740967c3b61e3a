"""Services that pause by a movable clock wake when it is moved past the end of their pause."""

import asyncio
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.store.disk import Disk
from skyrocket.testing import movable_clock
from skyrocket.testing.movable_clock import MovableClock, MovedDisk, ServiceStuck
from skyrocket.testing.time_travel import HOUR_MS, TOGETHER_MS, next_stop


async def with_services(*services: Coroutine[Any, Any, None]) -> list["asyncio.Task[None]"]:
    tasks = [asyncio.create_task(service) for service in services]
    await asyncio.sleep(0)
    return tasks


async def cancelled(*tasks: "asyncio.Task[None]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_time_goes_on_by_itself_and_by_moves() -> None:
    clock = MovableClock()
    before_ms, before = clock.now_ms(), clock.monotonic()
    await asyncio.sleep(0.02)
    await clock.move_to(clock.now_ms() + HOUR_MS)
    assert HOUR_MS + 20 <= clock.now_ms() - before_ms < HOUR_MS + 60_000
    assert 3600.02 <= clock.monotonic() - before < 3660


async def test_a_pause_ends_when_the_clock_is_moved_past_it_and_not_before() -> None:
    clock = MovableClock()
    woken: list[str] = []

    async def service(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    tasks = await with_services(service("late", 7200), service("early", 60), service("middle", 3600))
    await clock.move_to(clock.now_ms() + 59_000)
    assert woken == []
    await clock.move_to(clock.now_ms() + HOUR_MS)
    assert woken == ["early", "middle"]
    await cancelled(*tasks)


async def test_a_pause_ends_by_itself_in_real_time() -> None:
    clock = MovableClock()
    began = time.monotonic()
    await clock.sleep(0.05)
    await clock.sleep_until(clock.now_ms() + 50, 10)
    assert time.monotonic() - began > 0.09


async def test_who_waits_for_a_moment_looks_at_every_move_and_says_which() -> None:
    clock = MovableClock()
    due_ms = clock.now_ms() + 90_000
    looks: list[bool] = []

    async def service() -> None:
        while True:
            looks.append(clock.now_ms() >= due_ms)
            await clock.sleep_until(None if looks[-1] else due_ms, 30)

    tasks = await with_services(service())
    assert clock.next_due_ms() == due_ms
    await clock.look_again()
    assert looks == [False, False]
    await clock.move_to(due_ms)
    assert looks == [False, False, True]
    assert clock.next_due_ms() is None
    await cancelled(*tasks)


async def test_a_move_returns_after_the_work_that_it_set_off_also_in_threads() -> None:
    clock = MovableClock()
    done: list[str] = []

    async def service() -> None:
        while True:
            await clock.sleep(60)
            await asyncio.to_thread(time.sleep, 0.05)
            done.append("work")

    tasks = await with_services(service())
    await clock.move_to(clock.now_ms() + 61_000)
    assert done == ["work"]
    await cancelled(*tasks)


async def test_a_service_that_does_not_come_to_rest_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(movable_clock, "WORK_SECONDS", 0.05)

    clock = MovableClock()

    async def service() -> None:
        await clock.sleep(1)
        await asyncio.sleep(60)

    task = asyncio.create_task(service(), name="the stuck one")
    await asyncio.sleep(0)
    with pytest.raises(ServiceStuck, match="the stuck one"):
        await clock.move_to(clock.now_ms() + 2000)
    await cancelled(task)
    await clock.look_again()  # who has ended is waited for no more


async def test_files_are_as_old_as_the_moves_since_they_were_written_make_them(tmp_path: Path) -> None:
    clock = MovableClock()
    disk = MovedDisk(clock)
    written = [tmp_path / name for name in ("first", "second", "third")]
    moves = (0, 1000, HOUR_MS)
    for path, distance in zip(written, moves, strict=True):
        await clock.move_to(clock.now_ms() + distance)
        path.write_bytes(b"x")
        await asyncio.sleep(0.03)
    moved = [disk.modified_ms(str(path)) - Disk().modified_ms(str(path)) for path in written]
    assert moved == [pytest.approx(ms, abs=5) for ms in (0, 1000, 1000 + HOUR_MS)]
    assert disk.used_ratio(str(tmp_path)) == 0.0


@given(
    st.integers(0, 10 * HOUR_MS),
    st.lists(st.integers(0, 10 * HOUR_MS), max_size=20),
    st.integers(0, 10 * HOUR_MS),
)
def test_stops_pass_every_due_moment_closely_and_end_at_the_target(now_ms: int, dues: list[int], way_ms: int) -> None:
    target_ms, waiting, stops = now_ms + way_ms, sorted(dues), [now_ms]
    while stops[-1] < target_ms:
        at = stops[-1]
        stop = next_stop(at, waiting[0] if waiting else None, target_ms)
        assert at < stop <= min(target_ms, at + HOUR_MS)
        for due in [due for due in waiting if due <= stop]:
            assert stop - max(due, at) <= TOGETHER_MS
            waiting.remove(due)
        stops.append(stop)
    assert stops[-1] == target_ms
    assert all(due > target_ms for due in waiting) or way_ms == 0
