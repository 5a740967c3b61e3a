"""The door of the store: one walk of a message, refusals, signals, durability, reopening, recovery."""

import shutil
import threading
import time
from pathlib import Path

import pytest

from skyrocket.errors import StoreClosed, StoreError
from skyrocket.format.batch import BatchElement
from skyrocket.format.message_id import offset_message_id, parse_offset_message_id
from skyrocket.format.record import decode_records
from skyrocket.model.message import Host
from skyrocket.store.message_store import LOCAL_HOST, MessageStore
from skyrocket.store.results import Durability, PutStatus
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import (
    FILE_SIZE,
    TOPIC,
    Stores,
    UnforcedDisk,
    bodies,
    files_under,
    fill_files,
    log_bytes,
    message,
    put,
    record,
    small_config,
    wait_durable,
)
from tests.waiting import wait_until

# -- one walk ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A001", "A002", "E016", "B022")
def test_a_message_goes_into_the_log_and_is_found_through_queue_and_index(stores: Stores) -> None:
    store = stores.open()
    result = put(store, b"content", queue_id=1, properties={"KEYS": "order-7", "TAGS": "paid"})
    store.dispatch()

    assert (result.physical_offset, result.queue_offset, result.durability) == (0, 0, Durability.MEMORY)
    by_queue = store.get(TOPIC, 1, 0)
    by_key = store.query(TOPIC, "order-7")
    by_place = store.by_physical_offset(result.physical_offset)
    assert by_place is not None
    assert by_queue.join() == bytes(by_key[0]) == bytes(by_place) == log_bytes(store)


@pytest.mark.requirement("A007", "B029", "C096")
@pytest.mark.parametrize("host", [LOCAL_HOST, Host(bytes(range(16)), 10911)], ids=["IPv4", "IPv6"])
def test_the_message_id_leads_back_to_the_record(tmp_path: Path, host: Host) -> None:
    with MessageStore(tmp_path, small_config(), store_host=host, clock=FakeClock(), disk=UnforcedDisk()) as store:
        put(store, b"one")
        result = put(store, b"two")
        found = record(store, result.physical_offset)
        identity = offset_message_id(found.store_host, found.physical_offset)
        assert len(identity) == (32 if len(host.address) == 4 else 56)
        assert parse_offset_message_id(identity) == (host, result.physical_offset)
        assert record(store, parse_offset_message_id(identity)[1]).body == b"two"


@pytest.mark.requirement("A004", "A012", "A018", "D004", "E003", "E013")
def test_sizes_are_rocketmqs_unless_set_otherwise(tmp_path: Path) -> None:
    with MessageStore(tmp_path, disk=UnforcedDisk()) as store:
        put(store, properties={"KEYS": "k"})
        store.query(TOPIC, "k")
        store.queues.write_out()
        assert (tmp_path / "commitlog" / f"{0:020d}").stat().st_size == 1_073_741_824
        assert (tmp_path / "consumequeue" / TOPIC / "0" / f"{0:020d}").stat().st_size == 6_000_000
        (index_file,) = (tmp_path / "index").iterdir()
        assert index_file.stat().st_size == 420_000_040
        assert len(index_file.name) == 17


# -- refusals ------------------------------------------------------------------------------------------------------


def test_each_check_before_an_append_has_its_status(stores: Stores) -> None:
    store = stores.open(max_message_size=1000)
    for known in (False, True):  # a queue that is new, and one that is known
        large = message(b"x" * 1001)
        long = message()
        long.properties = b"p\x01" + b"v" * 32768
        assert store.put(large).status is PutStatus.MESSAGE_ILLEGAL
        assert store.put(long).status is PutStatus.PROPERTIES_SIZE_EXCEEDED
        assert store.put(message(queue_id=-1)).status is PutStatus.MESSAGE_ILLEGAL
        if not known:
            assert store.commit_log.written_offset == 0
            put(store, b"x" * 1000)
    assert store.statistics.put_refused == 6
    assert put(store).queue_offset == 1
    refused = store.put(message(b"x" * 1001))
    assert (refused.durability, refused.physical_offset, refused.queue_offset) == (Durability.NONE, -1, -1)


def test_the_longest_properties_are_taken(stores: Stores) -> None:
    store = stores.open()
    longest = message()
    longest.properties = b"p\x01" + b"v" * 32764 + b"\x02"
    result = store.put(longest)
    assert result.ok
    assert len(record(store, result.physical_offset).properties["p"]) == 32764


def test_a_closed_store_takes_nothing(stores: Stores) -> None:
    store = stores.open()
    put(store)
    store.close()
    store.close()
    assert store.put(message()).status is PutStatus.SERVICE_NOT_AVAILABLE
    with pytest.raises(StoreClosed):
        store.append_raw(0, b"x")


def test_a_store_is_opened_once_and_a_second_attempt_takes_nothing(stores: Stores) -> None:
    store = stores.open()
    put(store)
    with pytest.raises(StoreError, match="only once"):
        store.open()
    store.close()
    with pytest.raises(StoreError, match="only once"):
        store.open()
    assert stores.open().max_offset(TOPIC, 0) == 1  # the lock is free


@pytest.mark.parametrize("clean", [True, False])
def test_a_removed_topic_does_not_come_back(stores: Stores, clean: bool) -> None:
    store = stores.open()
    for _ in range(5):
        put(store, b"old")
    store.dispatch()
    store.removal.remove_topic(TOPIC)
    put(store, b"new")
    store.close()
    if not clean:
        Path(store.paths.abort).touch()
    store = stores.open()
    assert bodies(store.get(TOPIC, 0, 0)) == [b"new"]


# -- signals -------------------------------------------------------------------------------------------------------


def test_an_append_that_hangs_means_page_cache_busy(stores: Stores, clock: FakeClock) -> None:
    entered, go_on = threading.Event(), threading.Event()

    class Hanging(UnforcedDisk):
        def allocate(self, fd: int, position: int, length: int) -> None:
            if threading.current_thread().name == "writer":
                entered.set()
                assert go_on.wait(10)
            super().allocate(fd, position, length)

    store = stores.open(disk=Hanging())
    put(store)
    writer = threading.Thread(target=lambda: put(store, b"x" * 20_000), name="writer")
    writer.start()
    assert entered.wait(5)
    assert not store.page_cache_busy
    clock.advance(ms=1001)
    assert store.page_cache_busy
    refused = store.put(message())
    assert refused.status is PutStatus.OS_PAGE_CACHE_BUSY
    assert store.intake.put_batch(message(), []).status is PutStatus.MESSAGE_ILLEGAL
    go_on.set()
    writer.join()
    assert not store.page_cache_busy
    assert put(store).queue_offset == 2


def test_dispatch_lag_is_what_queues_have_not_seen(stores: Stores) -> None:
    store = stores.open()
    end = [put(store).end_offset for _ in range(3)][-1]
    assert store.dispatch_lag_bytes == end
    store.dispatch()
    assert store.dispatch_lag_bytes == 0


# -- reopening -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("C156")
def test_a_clean_restart_changes_no_file(stores: Stores) -> None:
    store = stores.open()
    for _ in range(3):
        fill_files(store, len(store.commit_log.files.starts) + 1, properties={"KEYS": "k", "TAGS": "t"})
    store.close()
    before = files_under(store.paths.root)
    store = stores.open()
    assert store.recovery is not None
    assert store.recovery.clean
    assert not store.recovery.rebuilt_queues
    store.close()
    after = files_under(store.paths.root)
    assert after == before


def test_offsets_go_on_after_a_restart(stores: Stores, clock: FakeClock) -> None:
    store = stores.open()
    first = [put(store, queue_id=number % 3) for number in range(10)]
    store.close()
    clock.set(clock.now_ms() - 10_000)
    store = stores.open()
    result = put(store, queue_id=0)
    assert result.queue_offset == 4
    assert result.physical_offset == first[-1].end_offset
    assert result.store_timestamp == first[-1].store_timestamp  # never before what is there


@pytest.mark.requirement("A017", "B025", "C156", "C158")
@pytest.mark.parametrize("kept", ["everything", "no queues", "no index", "log only"])
def test_after_an_unclean_stop_everything_is_built_from_the_log(stores: Stores, kept: str) -> None:
    store = stores.open()
    for number in range(300):
        put(store, b"%d" % number + b"x" * 400, queue_id=number % 2, properties={"KEYS": f"k{number % 50}"})
    store.dispatch()
    store.flush()
    store.flush_queues()
    assert store.index is not None
    store.index.catch_up()
    root = Path(store.paths.root)
    crashed = root.with_name("crashed")
    shutil.copytree(root, crashed)  # as a killed process leaves it
    queues = files_under(store.paths.consume_queue)
    if kept in ("no queues", "log only"):
        shutil.rmtree(crashed / "consumequeue")
    if kept in ("no index", "log only"):
        shutil.rmtree(crashed / "index")
    if kept == "log only":
        (crashed / "checkpoint").unlink()
        (crashed / "skyrocket.manifest").unlink()

    again = stores.open("crashed")
    assert again.recovery is not None
    assert not again.recovery.clean
    assert log_bytes(again) == log_bytes(store)
    assert files_under(again.paths.consume_queue) == queues
    assert [again.max_offset(TOPIC, queue_id) for queue_id in (0, 1)] == [150, 150]
    for number in range(50):
        assert {bytes(view) for view in again.query(TOPIC, f"k{number}")} == {
            bytes(view) for view in store.query(TOPIC, f"k{number}")
        }


@pytest.mark.requirement("C156")
def test_a_torn_tail_is_cut_and_reads_as_zeros(stores: Stores) -> None:
    store = stores.open()
    results = [put(store, b"%d" % number) for number in range(5)]
    root = Path(store.paths.root)
    shutil.copytree(root, root.with_name("crashed"))
    log = root.with_name("crashed") / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    data[results[4].end_offset - 1] ^= 0xFF  # the topic of the last record
    data[results[4].physical_offset + 90] ^= 0xFF  # and its body
    log.write_bytes(data)

    again = stores.open("crashed")
    assert bodies(again.get(TOPIC, 0, 0)) == [b"0", b"1", b"2", b"3"]
    again.close()
    assert not any(log.read_bytes()[results[3].end_offset :])
    again = stores.open("crashed")
    assert put(again).physical_offset == results[4].physical_offset


@pytest.mark.requirement("C158")
def test_what_was_put_but_not_dispatched_is_there_after_a_kill(stores: Stores) -> None:
    store = stores.open()
    put(store, b"dispatched")
    store.dispatch()
    put(store, b"not dispatched")
    shutil.copytree(store.paths.root, Path(store.paths.root).with_name("killed"))
    again = stores.open("killed")
    assert bodies(again.get(TOPIC, 0, 0)) == [b"dispatched", b"not dispatched"]


def test_a_prepared_file_left_by_a_kill_is_used(stores: Stores) -> None:
    store = stores.open()
    put(store)
    deadline = time.monotonic() + 60
    next_file = Path(store.commit_log.files.path_of(FILE_SIZE))
    while not next_file.exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    shutil.copytree(store.paths.root, Path(store.paths.root).with_name("killed"))
    again = stores.open("killed")
    results = fill_files(again, 2)
    assert results[-1].physical_offset == FILE_SIZE
    again.dispatch()
    assert again.max_offset(TOPIC, 0) == len(results) + 1


# -- time and threads ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("B005")
@pytest.mark.usefixtures("hurried_threads")
def test_writers_and_readers_work_at_the_same_time(stores: Stores) -> None:
    store = stores.open(
        dispatch_thread=True, commit_log_file_size=1 << 16, queue_flush_interval_ms=2, flush_interval_ms=5
    )
    stop = threading.Event()
    problems: list[str] = []

    def read(queue_id: int) -> None:
        offset = 0
        while not stop.is_set() or offset < store.max_offset(TOPIC, queue_id):
            result = store.get(TOPIC, queue_id, offset)
            for found in decode_records(result.join()):
                if (found.queue_offset, found.queue_id) != (offset, queue_id):
                    problems.append(f"{found.queue_offset} at {offset}")
                offset += 1
            if not result.count:
                time.sleep(0.001)
        if offset != 1000:
            problems.append(f"queue {queue_id} ended at {offset}")

    readers = [threading.Thread(target=read, args=(queue_id,)) for queue_id in range(2)]
    for reader in readers:
        reader.start()
    for number in range(2000):
        put(store, b"x" * (number % 300), queue_id=number % 2)
    while store.dispatch_lag_bytes:
        time.sleep(0.001)
    stop.set()
    for reader in readers:
        reader.join()
    assert problems == []


@pytest.mark.requirement("B005")
def test_nearly_every_put_takes_less_than_a_millisecond(stores: Stores) -> None:
    store = stores.open(commit_log_file_size=1 << 22)
    for _ in range(5000):
        put(store, b"x" * 100)
    counts = store.statistics.put_latency.counts
    assert counts[0] > 0.95 * sum(counts)


def test_a_batch_can_be_waited_for_too(stores: Stores) -> None:
    store = stores.open()
    batch = store.intake.put_batch(message(), [BatchElement(0, b"one", b""), BatchElement(0, b"two", b"")])
    assert batch.durability is Durability.MEMORY
    durable = wait_durable(store, batch)
    assert (durable.status, durable.durability) == (PutStatus.PUT_OK, Durability.DISK)
    assert store.commit_log.flushed_offset >= batch.end_offset


def test_a_dispatcher_that_breaks_stops_the_intake_and_says_so(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    store = stores.open(dispatch_thread=True)

    def broken(*_: object) -> None:
        raise ValueError("no such key")

    monkeypatch.setattr(store.index, "add", broken)
    put(store)
    wait_until(lambda: store.failure is not None)
    refused = store.put(message())
    assert refused.status is PutStatus.SERVICE_NOT_AVAILABLE
    assert "dispatch failed: no such key" in refused.remark
