"""Timers while a thread of the store writes the entries of queues to a slow disk: dispatch waits, and so do they."""

import asyncio
import contextlib
from pathlib import Path

from skyrocket.broker.core.dispatching import Dispatching
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.timer.timed import Timed
from tests.unit.store.stores import writing_queues
from tests.waiting import until


async def test_a_timer_that_rolls_meanwhile_waits_on_afterwards(tmp_path: Path, clock: FakeClock) -> None:
    timed = Timed(tmp_path, clock, timer_roll_window=4)
    timed.put_at(b"far", clock.now_ms() + 20_000)
    timed.fire()
    Dispatching(timed.store)
    service = timed.service
    running = asyncio.ensure_future(service.run())
    with writing_queues(timed.store):
        clock.advance(seconds=5)
        await until(lambda: service.totals.rolled == 1)
        assert service.totals.parked == 1
    await until(lambda: service.totals.parked == 2)
    while not timed.bodies():
        clock.advance(seconds=1)
        await until(lambda: service.read_time_ms == clock.now_ms())
    assert timed.bodies() == [b"far"]
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    timed.stop()


def test_a_recall_that_a_slave_has_copied_meanwhile_is_in_time_when_it_acts(tmp_path: Path, clock: FakeClock) -> None:
    """The master had confirmed it, and died."""
    master, slave = Timed(tmp_path / "master", clock), Timed(tmp_path / "slave", clock)
    due_ms = clock.now_ms() + 5000
    master.put_at(b"recalled", due_ms)
    recall_begins = master.store.commit_log.written_offset
    master.recall("recalled", due_ms)
    log = master.store.commit_log.raw(0, 1 << 20)
    assert log is not None
    slave.store.append_raw(0, log[:recall_begins])
    assert slave.fire() == 1
    clock.advance(seconds=6)
    slave.store.intake.after_put = lambda: None
    with writing_queues(slave.store):
        slave.store.append_raw(recall_begins, log[recall_begins:])
        assert slave.store.dispatch() == 0
        assert slave.service.fire_due(clock.now_ms()) == 0
    slave.store.dispatch()
    slave.fire()
    assert slave.service.totals.cancelled == 1
    assert not slave.bodies()
    del log
    master.stop()
    slave.stop()
