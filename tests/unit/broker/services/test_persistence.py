"""Tables are written beside the event loop, one write after the other."""

import asyncio
import threading

import pytest

from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.persistence import Persistence, saved
from skyrocket.broker.state.topics import TopicTable
from skyrocket.format.config_files import CONSUMER_OFFSETS, TOPICS
from skyrocket.protocol.errors import SystemFailure
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.state.files import PATH, MemoryDisk, config_file


class SlowDisk(MemoryDisk):
    """Writes when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = threading.Event()
        self.began = threading.Event()
        self.threads: set[int] = set()
        self.writes = 0

    def write_file(self, path: str, data: bytes) -> None:
        self.threads.add(threading.get_ident())
        self.began.set()
        assert self.may_write.wait(10)
        self.writes += 1
        super().write_file(path, data)


async def test_a_change_is_written_by_another_thread_and_finished_although_the_service_is_cancelled() -> None:
    disk, offset_disk = SlowDisk(), MemoryDisk()
    table = TopicTable(config_file(TOPICS, disk), FakeClock(), save_at_once=False)
    offsets = ConsumerOffsetTable(config_file(CONSUMER_OFFSETS, offset_disk), FakeClock())
    service = Persistence([table], offsets, offset_interval_seconds=60.0)

    running = asyncio.create_task(service.run())
    table.ensure("Orders", 4)
    offsets.commit("Shop", "Orders", 0, 7)
    assert await asyncio.to_thread(disk.began.wait, 10)
    running.cancel()
    await asyncio.sleep(0.05)
    assert not running.done()
    disk.may_write.set()
    await asyncio.gather(running, return_exceptions=True)
    assert b"Orders" in disk.files[PATH]
    assert threading.get_ident() not in disk.threads
    assert PATH not in offset_disk.files  # their time had not come
    service.save_all()
    assert b"Shop" in offset_disk.files[PATH]
    assert not table.dirty


async def test_many_who_wait_for_the_same_table_share_its_writes_and_nobody_is_told_too_early() -> None:
    disk = SlowDisk()
    table = TopicTable(config_file(TOPICS, disk), FakeClock(), save_at_once=False)
    service = Persistence([table], ConsumerOffsetTable(config_file(CONSUMER_OFFSETS), FakeClock()))

    async def create(number: int) -> None:
        table.ensure(f"T{number}", 1)
        await service.save_now(table)
        assert f'"T{number}"'.encode() in disk.files[PATH]

    waiting = [asyncio.create_task(create(number)) for number in range(50)]
    assert await asyncio.to_thread(disk.began.wait, 10)
    late = asyncio.create_task(create(50))  # not in the write that has begun
    await asyncio.sleep(0.02)
    assert not any(task.done() for task in waiting)
    disk.may_write.set()
    await asyncio.gather(*waiting, late)
    assert 2 <= disk.writes <= 3
    assert threading.get_ident() not in disk.threads


async def test_whoever_waits_hears_that_a_table_could_not_be_saved_and_it_is_saved_later() -> None:
    class FullDisk(MemoryDisk):
        is_full = True

        def write_file(self, path: str, data: bytes) -> None:
            if self.is_full:
                raise OSError(28, "No space left on device")
            super().write_file(path, data)

    disk = FullDisk()
    table = TopicTable(config_file(TOPICS, disk), FakeClock(), save_at_once=False)
    service = Persistence([table], ConsumerOffsetTable(config_file(CONSUMER_OFFSETS), FakeClock()))

    table.ensure("Orders", 4)
    with pytest.raises(SystemFailure, match=r"in force but could not be saved.*No space left"):
        await saved(service.save_now, table)
    assert table.dirty
    disk.is_full = False
    await saved(service.save_now, table)
    assert b"Orders" in disk.files[PATH]
