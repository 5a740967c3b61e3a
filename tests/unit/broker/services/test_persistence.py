"""Tables are written beside the event loop, one write after the other."""

import asyncio
import threading

from skyrocket.broker.services.persistence import Persistence
from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.topics import TopicTable
from skyrocket.format.config_files import consumer_offsets, topics
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.state.files import PATH, MemoryDisk, config_file


class SlowDisk(MemoryDisk):
    """Writes when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = threading.Event()
        self.began = threading.Event()
        self.threads: set[int] = set()

    def write_file(self, path: str, data: bytes) -> None:
        self.threads.add(threading.get_ident())
        self.began.set()
        assert self.may_write.wait(10)
        super().write_file(path, data)


def test_a_change_is_written_by_another_thread_and_finished_although_the_service_is_cancelled() -> None:
    disk, offset_disk = SlowDisk(), MemoryDisk()
    table = TopicTable(config_file(topics, disk), FakeClock(), save_at_once=False)
    offsets = ConsumerOffsetTable(config_file(consumer_offsets, offset_disk), FakeClock())
    service = Persistence([table], offsets, offset_interval_seconds=60.0)

    async def main() -> None:
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

    asyncio.run(main())
    assert threading.get_ident() not in disk.threads
    assert PATH not in offset_disk.files  # their time had not come
    service.save_all()
    assert b"Shop" in offset_disk.files[PATH]
    assert not table.dirty
