"""The transient pool: appends to private buffers, readers see only what was committed."""

from typing import Any

import pytest

from skyrocket.store.results import Durability, PutStatus
from skyrocket.store.transient_pool import PoolExhausted, TransientPool
from tests.unit.store.stores import (
    FILE_SIZE,
    TOPIC,
    Stores,
    bodies,
    copy_log,
    fill_files,
    log_bytes,
    message,
    put,
    wait_durable,
)
from tests.waiting import wait_until

POOL: dict[str, Any] = {"transient_pool": True, "transient_pool_size": 2}


def test_a_pool_lends_its_buffers_and_takes_them_back() -> None:
    pool = TransientPool(2, 4096)
    first, second = pool.borrow(), pool.borrow()
    assert len(first) == len(second) == 4096
    assert pool.free == 0
    with pytest.raises(PoolExhausted):
        pool.borrow()
    pool.give_back(first)
    assert pool.borrow() is first


@pytest.mark.requirement("A030", "A031")
def test_readers_see_only_what_was_committed(stores: Stores) -> None:
    store = stores.open(**POOL)
    result = put(store, b"one")
    assert result.durability is Durability.BUFFER
    assert store.dispatch() == 0
    assert store.by_physical_offset(0) is None
    assert store.commit_log.raw(0, 100) is None
    assert not any(log_bytes(store))  # the page cache has nothing yet

    store.commit_log.commit()
    put(store, b"two")
    assert store.dispatch() == 1
    assert bodies(store.get(TOPIC, 0, 0)) == [b"one"]
    assert store.by_physical_offset(result.end_offset) is None
    store.flush()
    store.dispatch()
    assert bodies(store.get(TOPIC, 0, 0)) == [b"one", b"two"]


@pytest.mark.requirement("A030")
def test_a_flush_commits_first(stores: Stores) -> None:
    store = stores.open(**POOL)
    result = put(store)
    durable = wait_durable(store, result)
    assert durable.durability is Durability.DISK
    assert store.commit_log.flushed_offset == result.end_offset


def test_everything_is_committed_every_200_ms_by_itself(stores: Stores) -> None:
    store = stores.open(**POOL, commit_interval_ms=10, commit_thorough_interval_ms=20)
    put(store)
    wait_until(store.dispatch)
    assert store.max_offset(TOPIC, 0) == 1
    assert store.commit_log.flushed_offset == 0  # committed, not flushed


def test_the_files_are_the_same_as_without_the_pool(stores: Stores) -> None:
    pooled, plain = stores.open("pooled", **POOL), stores.open("plain")
    for store in (pooled, plain):
        for files in (2, 3, 4):
            fill_files(store, files)
            store.commit_log.commit()
        put(store, b"last")
        store.flush()
    assert log_bytes(pooled) == log_bytes(plain)
    assert len(pooled.commit_log.files.starts) == 4


def test_an_exhausted_pool_means_busy_until_something_is_committed(stores: Stores) -> None:
    store = stores.open(**POOL)
    assert not store.transient_pool_deficient
    fill_files(store, 2)
    assert store.transient_pool_deficient
    while (result := store.put(message(b"x" * 500))).ok:
        pass
    assert result.status is PutStatus.OS_PAGE_CACHE_BUSY
    assert "transient store pool" in result.remark
    assert store.commit_log.written_offset <= 2 * FILE_SIZE
    assert store.commit_log.commit()
    assert not store.transient_pool_deficient
    assert put(store, b"x" * 500).physical_offset == 2 * FILE_SIZE


def test_a_commit_waits_for_enough_pages(stores: Stores) -> None:
    store = stores.open(**POOL)
    put(store, b"x" * 5000)
    assert not store.commit_log.commit(least_pages=2)
    put(store, b"x" * 5000)
    assert store.commit_log.commit(least_pages=2)
    assert not store.commit_log.commit()


def test_a_clean_close_keeps_everything(stores: Stores) -> None:
    store = stores.open(**POOL)
    results = fill_files(store, 2)
    store.close()
    store = stores.open(**POOL)
    assert store.recovery is not None
    assert store.recovery.clean
    assert store.max_offset(TOPIC, 0) == len(results)
    assert put(store).queue_offset == len(results)


def test_a_replica_may_use_the_pool_too(stores: Stores) -> None:
    master = stores.open("master")
    fill_files(master, 3)
    replica = stores.open("replica", transient_pool=True, transient_pool_size=5)
    copy_log(master, replica, 0, 5000)
    replica.flush()
    replica.dispatch()
    assert log_bytes(replica) == log_bytes(master)
    assert replica.max_offset(TOPIC, 0) > 100


def test_a_replica_whose_pool_is_exhausted_may_try_again(stores: Stores) -> None:
    master = stores.open("master")
    fill_files(master, 4)
    replica = stores.open("replica", **POOL)
    data = log_bytes(master)
    replica.append_raw(0, data[: 2 * FILE_SIZE])
    with pytest.raises(PoolExhausted):
        replica.append_raw(2 * FILE_SIZE, data[2 * FILE_SIZE :])
    assert replica.failure is None
    for start in (2 * FILE_SIZE, 3 * FILE_SIZE):
        assert replica.flush()
        replica.append_raw(start, data[start : start + FILE_SIZE])
    replica.flush()
    assert log_bytes(replica) == data
