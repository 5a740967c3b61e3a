"""Thousands of queues: made when first used, written in rounds, few files open, forced to disk together."""

import time
from pathlib import Path

import pytest

from skyrocket.errors import CorruptFile
from skyrocket.store.message_store import MessageStore
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import (
    TOPIC,
    CountingDisk,
    Stores,
    UnforcedDisk,
    bodies,
    files_under,
    message,
    put,
    small_config,
)


class CountingAllDisk(CountingDisk):
    """Also remembers the most descriptors that were open, and calls that force everything at once."""

    def __init__(self) -> None:
        super().__init__()
        self.most_open = 0
        self.forced_together = 0

    def read_at(self, fd: int, length: int, position: int) -> bytes:
        self.most_open = max(self.most_open, len(self.opened))
        return super().read_at(fd, length, position)

    def write_at(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
        self.most_open = max(self.most_open, len(self.opened))
        super().write_at(fd, data, position)

    def sync_all(self, directory: str) -> None:
        self.forced_together += 1


@pytest.mark.requirement("A014", "B022", "D015")
def test_two_thousand_queues_need_few_open_files(stores: Stores) -> None:
    disk = CountingAllDisk()
    store = stores.open(disk=disk, max_open_queue_files=16, index_enabled=False, commit_log_file_size=1 << 20)
    keys = [(f"Topic{n % 100}", n // 100) for n in range(2000)]
    for round_number in range(2):
        store.intake.put_group([message(b"%d" % round_number, topic=topic, queue_id=number) for topic, number in keys])
        store.dispatch()
        store.queues.write_out()
    store.queues.sync()

    assert store.queues.open_files <= 16
    assert disk.most_open <= 16 + 4  # log files and what is open for a moment
    assert disk.forced_together == 1  # one call for all of them
    for n in (0, 1, 777, 1999):
        assert bodies(store.get(f"Topic{n % 100}", n // 100, 0)) == [b"0", b"1"]
    assert disk.most_open <= 16 + 4


@pytest.mark.slow
@pytest.mark.requirement("B021")
def test_ten_thousand_queues_are_kept_and_found_again(stores: Stores) -> None:
    store = stores.open(index_enabled=False, commit_log_file_size=1 << 22)
    keys = [(f"Topic{n % 100}", n // 100) for n in range(10_000)]
    store.intake.put_group([message(b"1", topic=topic, queue_id=queue_id) for topic, queue_id in keys])
    store.close()
    store = stores.open(index_enabled=False, commit_log_file_size=1 << 22)
    assert len(store.queues) == 10_000
    assert all(store.max_offset(topic, queue_id) == 1 for topic, queue_id in keys)
    results = store.intake.put_group([message(b"2", topic=topic, queue_id=queue_id) for topic, queue_id in keys])
    assert {result.queue_offset for result in results} == {1}


@pytest.mark.requirement("A014", "B022")
def test_an_append_writes_no_queue_file(stores: Stores) -> None:
    class Strict(UnforcedDisk):
        def write_at(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
            raise AssertionError("a put or a dispatch wrote to a queue")

    disk = Strict()
    store = stores.open(index_enabled=False)
    store.queues._disk = store.queues._handles._disk = disk
    for n in range(100):
        put(store, queue_id=n)
    store.dispatch()
    assert bodies(store.get(TOPIC, 57, 0)) == [b"hello"]
    store.queues._disk = store.queues._handles._disk = UnforcedDisk()


def test_entries_are_written_when_enough_of_them_are_there(stores: Stores) -> None:
    store = stores.open(consume_queue_file_size=20 * 4096)
    for _ in range(205):  # a page
        put(store, queue_id=0)
    put(store, queue_id=1)
    store.dispatch()
    assert store.queues.write_out(least_pages=2) == 0
    assert store.queues.write_out(least_pages=1) == 205 * 20
    assert store.queues.write_out() == 20
    assert store.queues.write_out() == 0


def test_entries_are_written_when_they_take_too_much_memory(stores: Stores) -> None:
    store = stores.open(queue_buffer_bytes=2000)
    for n in range(150):
        put(store, queue_id=n % 7)
    store.dispatch()
    assert files_under(store.paths.consume_queue)


@pytest.mark.requirement("A008", "D003")
def test_every_topic_has_its_directory_also_those_of_the_system(stores: Stores) -> None:
    store = stores.open()
    topics = ["Orders", "%RETRY%group", "%DLQ%group", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC"]
    for topic in topics:
        put(store, topic=topic, queue_id=3)
    store.close()
    assert sorted(files_under(store.paths.consume_queue)) == sorted(f"{topic}/3/{0:020d}" for topic in topics)
    store = stores.open()
    assert [store.max_offset(topic, 3) for topic in topics] == [1] * 5


def test_a_directory_that_is_no_queue_is_refused_by_name(stores: Stores) -> None:
    store = stores.open()
    put(store)
    store.close()
    (Path(store.paths.consume_queue) / TOPIC / "notes").mkdir()
    again = MessageStore(store.paths.root, small_config(), clock=FakeClock(), disk=UnforcedDisk())
    with pytest.raises(CorruptFile, match="notes"):
        again.open()
    (Path(store.paths.consume_queue) / TOPIC / "notes").rmdir()
    stores.open()  # nothing was left locked


def test_removing_a_topic_removes_its_files_and_numbers_begin_again(stores: Stores) -> None:
    store = stores.open()
    for queue_id in (0, 1):
        put(store, queue_id=queue_id)
    put(store, topic="Other")
    store.dispatch()
    store.queues.write_out()
    assert store.removal.remove_topic(TOPIC) == 2
    assert not (Path(store.paths.consume_queue) / TOPIC).exists()
    assert store.get("Other", 0, 0).count == 1
    store.queues.sync()


def test_a_queue_may_be_removed_while_it_is_being_forced_to_disk(stores: Stores) -> None:
    class Removing(UnforcedDisk):
        def sync(self, fd: int) -> None:
            queue = store.queues.get(TOPIC, 0)
            if queue is not None:
                store.queues.remove(queue)

    store = stores.open(disk=Removing())
    put(store)
    store.dispatch()
    store.queues.write_out()
    store.queues.sync()
    assert store.failure is None


@pytest.mark.requirement("B024")
def test_reading_a_queue_of_many_entries_is_quick(stores: Stores) -> None:
    store = stores.open(commit_log_file_size=1 << 22, consume_queue_file_size=300_000 * 20, index_enabled=False)
    put(store)
    store.intake.put_group([message(b"x") for _ in range(20_000)])
    store.dispatch()
    store.queues.write_out()
    queue = store.queues.get(TOPIC, 0)
    assert queue is not None
    began = time.thread_time()
    for offset in range(0, 20_000, 32):
        queue.entries.read(offset * 20, 640)
    assert 20_000 / (time.thread_time() - began) > 200_000
