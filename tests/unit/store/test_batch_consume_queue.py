"""A batch consume queue: one entry of 46 bytes for a record of several messages."""

from pathlib import Path
from typing import Any

import pytest

from skyrocket.format import sys_flag as flags
from skyrocket.format.queue_entry import BATCH_ENTRY
from skyrocket.store.batch_consume_queue import BatchConsumeQueue
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.entry_files import EntryFiles
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import Boundary, GetStatus, PutResult, PutStatus
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import ENTRIES_PER_FILE, TOPIC, Stores, bodies, fill_files, message, put, record

BATCH_TOPIC = "Batches"


def open_store(stores: Stores, **changes: Any) -> MessageStore:
    return stores.open(is_batch_topic=lambda topic: topic == BATCH_TOPIC, **changes)


def put_inner(store: MessageStore, count: int, **fields: Any) -> PutResult:
    result = store.put(inner(count, **fields))
    assert result.ok, result.remark
    return result


def inner(count: int | str, **fields: Any) -> PutMessage:
    return message(
        b"%s messages" % str(count).encode(),
        topic=BATCH_TOPIC,
        properties={"INNER_NUM": str(count)},
        sys_flag=flags.INNER_BATCH | flags.NEED_UNWRAP,
        **fields,
    )


def queue_of(store: MessageStore) -> BatchConsumeQueue:
    queue = store.queues.get(BATCH_TOPIC, 0)
    assert isinstance(queue, BatchConsumeQueue)
    return queue


def test_an_inner_batch_is_one_record_and_one_entry_but_counts_all_its_messages(
    stores: Stores, clock: FakeClock
) -> None:
    store = open_store(stores)
    results = [put_inner(store, count) for count in (3, 1, 10)]
    store.dispatch()

    assert [result.queue_offset for result in results] == [0, 3, 4]
    assert [record(store, result.physical_offset).properties["INNER_BASE"] for result in results] == ["0", "3", "4"]
    assert store.max_offset(BATCH_TOPIC, 0) == 14
    store.close()
    data = (Path(store.paths.batch_consume_queue) / BATCH_TOPIC / "0" / f"{0:020d}").read_bytes()
    entries = [BATCH_ENTRY.unpack_from(data, number * 46) for number in range(3)]
    assert entries == [
        (result.physical_offset, result.record_size, 0, clock.now_ms(), base, count, -1, 0)
        for result, base, count in zip(results, (0, 3, 4), (3, 1, 10), strict=True)
    ]
    assert not any(data[3 * 46 :])


def test_a_plain_message_of_a_batch_topic_counts_one(stores: Stores) -> None:
    store = open_store(stores)
    put_inner(store, 5)
    assert put(store, b"plain", topic=BATCH_TOPIC).queue_offset == 5
    assert put_inner(store, 2).queue_offset == 6
    store.dispatch()
    assert store.max_offset(BATCH_TOPIC, 0) == 8
    assert bodies(store.get(BATCH_TOPIC, 0, 5)) == [b"plain", b"2 messages"]


def test_several_inner_batches_put_together_get_bases_of_their_own(stores: Stores) -> None:
    store = open_store(stores)
    results = store.intake.put_group([inner(4), inner(4), inner(4)])
    assert [record(store, result.physical_offset).properties["INNER_BASE"] for result in results] == ["0", "4", "8"]


def test_a_false_base_offset_is_replaced(stores: Stores) -> None:
    store = open_store(stores)
    put_inner(store, 2)
    lying = inner(2)
    lying.properties += b"INNER_BASE\x01999\x02"
    result = store.put(lying)
    assert record(store, result.physical_offset).properties["INNER_BASE"] == "2"


@pytest.mark.parametrize("number", ["0", "-1", "x", "32768", "100000"])
def test_an_inner_batch_must_say_how_many_messages_it_has(stores: Stores, number: str) -> None:
    store = open_store(stores)
    assert store.put(inner(number)).status is PutStatus.MESSAGE_ILLEGAL
    assert put_inner(store, 1).queue_offset == 0


def test_an_inner_batch_belongs_to_a_batch_topic_only(stores: Stores) -> None:
    store = open_store(stores)
    put(store)
    wrong_topic = message(sys_flag=flags.INNER_BATCH, properties={"INNER_NUM": "3"})
    assert store.put(wrong_topic).status is PutStatus.MESSAGE_ILLEGAL
    put_inner(store, 1)
    no_flag = message(topic=BATCH_TOPIC, properties={"INNER_NUM": "3"})
    assert store.put(no_flag).status is PutStatus.MESSAGE_ILLEGAL
    assert put(store).queue_offset == 1


def test_messages_are_found_by_binary_search_from_the_middle_of_a_batch(stores: Stores) -> None:
    store = open_store(stores)
    for count in range(1, 2 * ENTRIES_PER_FILE + 5):
        put_inner(store, count)
    store.dispatch()
    queue = queue_of(store)
    base = 0
    for place, count in enumerate(range(1, 2 * ENTRIES_PER_FILE + 5)):
        for offset in (base, base + count - 1):
            assert queue.locate(offset) == place
        base += count
    assert queue.locate(base) is None
    found = store.get(BATCH_TOPIC, 0, 1 + 2 + 3 + 1, max_count=9)
    assert found.status is GetStatus.FOUND
    assert bodies(found) == [b"4 messages", b"5 messages"]
    assert (found.count, found.next_offset) == (9, 15)


def test_a_batch_larger_than_asked_for_is_given_whole(stores: Stores) -> None:
    store = open_store(stores)
    put_inner(store, 50)
    put_inner(store, 1)
    store.dispatch()
    found = store.get(BATCH_TOPIC, 0, 0, max_count=8)
    assert (bodies(found), found.next_offset) == ([b"50 messages"], 50)


def test_a_batch_queue_survives_a_restart_and_a_crash(stores: Stores) -> None:
    store = open_store(stores)
    for count in range(1, 30):
        put_inner(store, count)
    store.dispatch()
    store.close()
    store = open_store(stores)
    assert store.max_offset(BATCH_TOPIC, 0) == sum(range(30))
    assert put_inner(store, 3).queue_offset == sum(range(30))
    store.close()

    Path(store.paths.abort).touch()
    for file in (Path(store.paths.batch_consume_queue) / BATCH_TOPIC / "0").iterdir():
        file.unlink()
    store = open_store(stores)
    assert (store.min_offset(BATCH_TOPIC, 0), store.max_offset(BATCH_TOPIC, 0)) == (0, sum(range(30)) + 3)
    assert bodies(store.get(BATCH_TOPIC, 0, 0, 3)) == [b"1 messages", b"2 messages"]


def test_offsets_by_time_are_those_of_the_batches(stores: Stores, clock: FakeClock) -> None:
    store = open_store(stores)
    times = []
    for count in (2, 3, 4):
        times.append(put_inner(store, count).store_timestamp)
        clock.advance(ms=10)
    store.dispatch()
    assert [store.offset_by_time(BATCH_TOPIC, 0, time) for time in times] == [0, 2, 5]
    assert store.offset_by_time(BATCH_TOPIC, 0, times[0] + 1) == 2
    assert store.offset_by_time(BATCH_TOPIC, 0, times[2] + 1) == 5  # RocketMQ: never behind the last
    assert store.offset_by_time(BATCH_TOPIC, 0, times[1] + 1, Boundary.UPPER) == 2
    assert store.earliest_time(BATCH_TOPIC, 0) == times[0]


def test_the_first_offset_of_a_batch_queue_follows_the_log(stores: Stores) -> None:
    store = open_store(stores)
    put_inner(store, 3)
    put_inner(store, 4)
    fill_files(store, 2)
    put_inner(store, 5)
    store.dispatch()
    queue = queue_of(store)
    queue.correct_min_offset(1)
    assert store.min_offset(BATCH_TOPIC, 0) == 3
    queue.correct_min_offset(store.commit_log.file_size)
    assert store.min_offset(BATCH_TOPIC, 0) == 7
    queue.correct_min_offset(1 << 40)
    assert store.min_offset(BATCH_TOPIC, 0) == store.max_offset(BATCH_TOPIC, 0) == 12
    assert store.max_offset(TOPIC, 0) > 0


@pytest.mark.parametrize("reads_before", range(8))
def test_who_reads_while_the_first_file_of_a_batch_queue_goes_is_told_where_it_begins_now(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, reads_before: int
) -> None:
    store = open_store(stores)
    for _ in range(3 * ENTRIES_PER_FILE):
        put(store, b"x" * 3500, topic=BATCH_TOPIC)
    store.dispatch()
    store.queues.write_out()
    store.flush()
    read, reads = EntryFiles.read, 0

    def meets_the_cleaner(self: EntryFiles, position: int, length: int) -> bytes:
        nonlocal reads
        reads += 1
        if reads == reads_before + 1:
            for start in store.commit_log.files.starts[:2]:
                store.commit_log.files.drop_file(start)
            store.cleaner.clean()
        return read(self, position, length)

    monkeypatch.setattr(EntryFiles, "read", meets_the_cleaner)
    result = store.get(BATCH_TOPIC, 0, 0)
    monkeypatch.undo()
    low = store.min_offset(BATCH_TOPIC, 0)
    assert low > ENTRIES_PER_FILE
    if result.status is GetStatus.OFFSET_TOO_SMALL:
        assert result.next_offset == low
    else:  # it had begun to read
        assert result.status in (GetStatus.FOUND, GetStatus.MESSAGE_WAS_REMOVING)
        assert result.next_offset >= low
