"""Messages put together: one lock and one copy, but every message with an outcome of its own."""

import pytest

from skyrocket.format import sys_flag as flags
from skyrocket.format.record import pack_host
from skyrocket.model.message import Host
from skyrocket.store.results import PutStatus
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import (
    EMPTY_RECORD,
    FILE_SIZE,
    TOPIC,
    FullDisk,
    Stores,
    bodies,
    log_bytes,
    message,
    put,
    record,
)


def test_a_group_gives_the_same_bytes_as_one_message_after_the_other(stores: Stores) -> None:
    messages = [
        message(b"x" * (n * 97 % 700), queue_id=n % 3, topic=f"T{n % 2}", properties={"KEYS": f"k{n}"}, flag=n)
        for n in range(300)
    ]
    for n in range(0, 300, 7):
        messages[n].born_host = pack_host(Host(bytes(16), n))
    for n in range(0, 300, 11):
        messages[n].sys_flag = flags.TRANSACTION_PREPARED
    one_by_one = stores.open("single")
    expected = [one_by_one.put(one) for one in messages]
    together = stores.open("group")
    results = together.intake.put_group(messages[:50])
    for at in range(50, 300, 50):
        results += together.intake.put_group(messages[at : at + 50])

    assert results == expected
    assert log_bytes(together) == log_bytes(one_by_one)
    assert len(together.commit_log.files.starts) > 1


def test_a_group_that_crosses_a_file_leaves_a_blank_between(stores: Stores) -> None:
    store = stores.open()
    put(store)
    results = store.intake.put_group([message(b"x" * 30_000) for _ in range(5)])
    assert [result.queue_offset for result in results] == [1, 2, 3, 4, 5]
    assert results[2].physical_offset == FILE_SIZE
    assert results[4].physical_offset == 2 * FILE_SIZE
    store.dispatch()
    assert [len(body) for offset in range(1, 6) for body in bodies(store.get(TOPIC, 0, offset, 1))] == [30_000] * 5


@pytest.mark.parametrize("bad", [0, 1, 3])
def test_a_refused_message_of_a_group_does_not_harm_the_others(stores: Stores, bad: int) -> None:
    store = stores.open(max_message_size=1000)
    put(store, b"known")
    group = [message(b"%d" % n) for n in range(4)]
    group[bad].body = b"x" * 1001
    results = store.intake.put_group(group)

    assert [result.status for result in results] == [
        PutStatus.MESSAGE_ILLEGAL if n == bad else PutStatus.PUT_OK for n in range(4)
    ]
    assert [result.queue_offset for result in results if result.ok] == [1, 2, 3]
    store.dispatch()
    assert bodies(store.get(TOPIC, 0, 1)) == [b"%d" % n for n in range(4) if n != bad]


def test_a_record_larger_than_a_file_is_refused_within_a_group(stores: Stores, clock: FakeClock) -> None:
    store = stores.open()
    put(store, b"known")
    group = [message(b"before"), message(b"x" * FILE_SIZE), message(b"after")]
    results = store.intake.put_group(group)

    assert [result.status for result in results] == [PutStatus.PUT_OK, PutStatus.MESSAGE_ILLEGAL, PutStatus.PUT_OK]
    clock.advance(seconds=5)
    assert not store.page_cache_busy
    store.dispatch()
    assert bodies(store.get(TOPIC, 0, 0)) == [b"known", b"before", b"after"]


def test_when_the_disk_is_full_the_first_messages_of_a_group_are_kept(stores: Stores) -> None:
    disk = FullDisk()
    store = stores.open(disk=disk)
    put(store, b"x" * 20_000)
    store.commit_log.allocator.stop()
    disk.full = True
    results = store.intake.put_group([message(b"x" * 20_000) for _ in range(4)])

    assert [result.status for result in results] == [PutStatus.PUT_OK] * 2 + [PutStatus.CREATE_MAPPED_FILE_FAILED] * 2
    disk.full = False
    assert put(store, b"next").queue_offset == 3
    store.dispatch()
    assert store.max_offset(TOPIC, 0) == 4
    assert store.commit_log.written_offset == 3 * (20_000 + EMPTY_RECORD) + EMPTY_RECORD + 4


def test_an_empty_group_has_no_results(stores: Stores) -> None:
    assert stores.open().intake.put_group([]) == []


def test_a_group_shares_one_store_time(stores: Stores) -> None:
    store = stores.open()
    put(store)
    results = store.intake.put_group([message(), message()])
    assert len({record(store, result.physical_offset).store_timestamp for result in results}) == 1
