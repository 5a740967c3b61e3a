"""The log: place of every record, roll-over, blanks, batches, hosts, topic lengths, and raw bytes for replicas."""

import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyrocket.errors import StoreError
from skyrocket.format import sys_flag as flags
from skyrocket.format.batch import BatchElement
from skyrocket.format.crc import record_crc_property
from skyrocket.format.record import BLANK, MAGIC_BLANK, MAGIC_V1, MAGIC_V2, decode_record, decode_records, pack_host
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
    copy_log,
    files_under,
    fill_files,
    log_bytes,
    message,
    put,
    put_sized,
    record,
)

# -- places ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("A002", "A026", "E023")
def test_records_of_all_topics_follow_each_other_in_order_of_arrival(stores: Stores) -> None:
    store = stores.open()
    results = [put(store, b"x" * n, topic=f"Topic{n % 3}", queue_id=n % 2) for n in range(20)]

    assert results[0].physical_offset == 0
    for before, after in pairwise(results):
        assert after.physical_offset == before.physical_offset + before.record_size
    stored = list(decode_records(log_bytes(store)))
    assert [len(found.body) for found in stored] == list(range(20))
    assert [found.topic for found in stored] == [f"Topic{n % 3}" for n in range(20)]


@pytest.mark.requirement("A002")
def test_later_puts_do_not_touch_earlier_bytes(stores: Stores) -> None:
    store = stores.open()
    put(store, b"first")
    before = log_bytes(store)

    fill_files(store, 3)

    assert log_bytes(store)[: len(before)] == before


@pytest.mark.requirement("A005", "A027", "C105", "E003")
def test_files_have_one_size_and_are_named_by_their_start_in_20_digits(stores: Stores) -> None:
    store = stores.open()
    fill_files(store, 3)

    files = sorted(Path(store.paths.commit_log).iterdir())[:3]
    assert [file.name for file in files] == ["00000000000000000000", "00000000000000065536", "00000000000000131072"]
    assert {file.stat().st_size for file in files} == {FILE_SIZE}


@pytest.mark.requirement("A006", "A007")
def test_each_record_is_found_by_its_physical_offset_and_by_no_other(stores: Stores) -> None:
    store = stores.open()
    results = fill_files(store, 4)

    for result in results:
        assert record(store, result.physical_offset).queue_offset == result.queue_offset
        assert store.by_physical_offset(result.physical_offset + 1) is None
    assert store.by_physical_offset(-1) is None
    assert store.by_physical_offset(store.commit_log.written_offset) is None
    assert len({result.physical_offset for result in results}) == len(results)


# -- the end of a file ---------------------------------------------------------------------------------------


@pytest.mark.requirement("A027")
def test_a_record_may_leave_exactly_eight_bytes_which_become_the_blank(stores: Stores) -> None:
    store = stores.open()
    put_sized(store, FILE_SIZE - 8)
    second = put_sized(store, EMPTY_RECORD)

    assert second.physical_offset == FILE_SIZE
    assert BLANK.unpack(log_bytes(store)[FILE_SIZE - 8 : FILE_SIZE]) == (8, MAGIC_BLANK)


@pytest.mark.requirement("A027", "A026")
def test_a_record_that_would_leave_seven_bytes_opens_the_next_file(stores: Stores) -> None:
    store = stores.open()
    put_sized(store, EMPTY_RECORD)
    second = put_sized(store, FILE_SIZE - EMPTY_RECORD - 7)

    assert second.physical_offset == FILE_SIZE
    left = FILE_SIZE - EMPTY_RECORD
    data = log_bytes(store)
    assert BLANK.unpack(data[EMPTY_RECORD : EMPTY_RECORD + 8]) == (left, MAGIC_BLANK)
    assert not any(data[EMPTY_RECORD + 8 : FILE_SIZE])


@pytest.mark.parametrize("size", [FILE_SIZE - 8, FILE_SIZE - 7])
def test_the_largest_record_is_a_file_less_its_blank(stores: Stores, size: int) -> None:
    store = stores.open()
    result = store.put(message(b"x" * (size - EMPTY_RECORD)))

    if size == FILE_SIZE - 8:
        assert result.ok
    else:
        assert result.status is PutStatus.MESSAGE_ILLEGAL
        assert str(FILE_SIZE) in result.remark
        assert store.commit_log.written_offset == 0


def test_the_log_goes_on_in_a_new_file_after_a_reopen_at_the_end_of_one(stores: Stores) -> None:
    store = stores.open()
    put_sized(store, FILE_SIZE - 8)
    store.close()

    store = stores.open()
    assert put(store, b"next").physical_offset == FILE_SIZE
    assert put(store, b"and next").queue_offset == 2


# -- fields -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("A025", "C092", "E004")
def test_every_field_of_a_message_is_stored_as_given(stores: Stores, clock: FakeClock) -> None:
    store = stores.open()
    put(store, b"one before", queue_id=3)
    result = put(
        store,
        b"body",
        queue_id=3,
        properties={"KEYS": "a b", "TAGS": "red", "WAIT": "false", "own": "value"},
        flag=-7,
        sys_flag=flags.COMPRESSED,
        born_timestamp=1_600_000_000_123,
        born_host=pack_host(Host(bytes([10, 1, 2, 3]), 54321)),
        reconsume_times=4,
        prepared_transaction_offset=99,
    )

    found = record(store, result.physical_offset)
    assert (found.topic, found.queue_id, found.queue_offset, found.body) == (TOPIC, 3, 1, b"body")
    assert (found.flag, found.sys_flag, found.reconsume_times) == (-7, flags.COMPRESSED, 4)
    assert found.born_timestamp == 1_600_000_000_123
    assert found.born_host == Host(bytes([10, 1, 2, 3]), 54321)
    assert found.store_host == Host(bytes([127, 0, 0, 1]), 10911)
    assert found.store_timestamp == result.store_timestamp == clock.now_ms()
    assert found.prepared_transaction_offset == 99
    assert found.properties == {"KEYS": "a b", "TAGS": "red", "WAIT": "false", "own": "value"}
    assert (found.tags, found.keys) == ("red", ["a", "b"])


@pytest.mark.parametrize("born_v6", [False, True])
@pytest.mark.parametrize("store_v6", [False, True])
def test_hosts_of_both_widths_set_their_flag_bits(stores: Stores, born_v6: bool, store_v6: bool) -> None:
    store = stores.open()
    born = Host(bytes(range(16)) if born_v6 else bytes(4), 1)
    own = Host(bytes(range(16, 32)) if store_v6 else bytes([9, 9, 9, 9]), 2)
    stale = flags.BORN_HOST_V6 | flags.STORE_HOST_V6
    result = put(store, born_host=pack_host(born), store_host=pack_host(own), sys_flag=stale)

    found = record(store, result.physical_offset)
    assert (found.born_host, found.store_host) == (born, own)
    assert bool(found.sys_flag & flags.BORN_HOST_V6) is born_v6
    assert bool(found.sys_flag & flags.STORE_HOST_V6) is store_v6
    assert result.record_size == EMPTY_RECORD + 5 + 12 * (born_v6 + store_v6)


@pytest.mark.parametrize(
    ("topic", "magic"),
    [("t" * 127, MAGIC_V1), ("%RETRY%" + "g" * 121, MAGIC_V2), ("%RETRY%" + "g" * 248, MAGIC_V2)],
    ids=["127", "retry 128", "retry 255"],
)
def test_only_retry_topics_above_127_bytes_are_stored_as_v2(stores: Stores, topic: str, magic: int) -> None:
    store = stores.open()
    found = record(store, put(store, topic=topic).physical_offset)
    assert (found.topic, found.magic) == (topic, magic)


@pytest.mark.parametrize("topic", ["t" * 128, "%RETRY%" + "g" * 249, "ä" * 64, "", "a/b", "a\0b", ".", ".."])
def test_a_topic_that_is_too_long_or_no_directory_name_is_illegal(stores: Stores, topic: str) -> None:
    store = stores.open()
    assert store.put(message(topic=topic)).status is PutStatus.MESSAGE_ILLEGAL
    assert store.intake.put_batch(message(topic=topic), [BatchElement(0, b"", b"")]).status is PutStatus.MESSAGE_ILLEGAL
    assert store.commit_log.written_offset == 0


def test_store_times_never_go_back_when_the_clock_does(stores: Stores, clock: FakeClock) -> None:
    store = stores.open()
    first = put(store)
    clock.set(clock.now_ms() - 3_600_000)
    second = put(store)
    clock.advance(hours=2)
    third = put(store)

    assert first.store_timestamp == second.store_timestamp < third.store_timestamp


@pytest.mark.parametrize(
    ("kind", "counted"),
    [
        (flags.TRANSACTION_NONE, True),
        (flags.TRANSACTION_PREPARED, False),
        (flags.TRANSACTION_COMMIT, True),
        (flags.TRANSACTION_ROLLBACK, False),
    ],
)
def test_prepared_and_rollback_records_get_no_queue_offset(stores: Stores, kind: int, counted: bool) -> None:
    store = stores.open()
    put(store, b"before")
    special = put(store, b"special", sys_flag=kind)
    after = put(store, b"after")
    store.dispatch()

    assert record(store, special.physical_offset).queue_offset == special.queue_offset == (1 if counted else 0)
    assert after.queue_offset == (2 if counted else 1)
    expected = [b"before", b"special", b"after"] if counted else [b"before", b"after"]
    assert bodies(store.get(TOPIC, 0, 0)) == expected


# -- batches ----------------------------------------------------------------------------------------------


def batch_of(*texts: bytes) -> list[BatchElement]:
    return [BatchElement(number, text, b"k\x01%d\x02" % number) for number, text in enumerate(texts)]


@pytest.mark.requirement("C093")
def test_a_batch_becomes_neighbouring_records_with_consecutive_offsets(stores: Stores) -> None:
    store = stores.open()
    put(store)
    result = store.intake.put_batch(
        message(prepared_transaction_offset=5, reconsume_times=2), batch_of(b"a", b"bb", b"ccc")
    )

    assert result.ok
    assert result.first_queue_offset == 1
    found = [record(store, offset) for offset in result.physical_offsets]
    assert [one.body for one in found] == [b"a", b"bb", b"ccc"]
    assert [one.queue_offset for one in found] == [1, 2, 3]
    assert [one.flag for one in found] == [0, 1, 2]
    assert [one.properties for one in found] == [{"k": "0"}, {"k": "1"}, {"k": "2"}]
    assert {one.reconsume_times for one in found} == {2}
    assert {one.prepared_transaction_offset for one in found} == {0}
    for before, after in pairwise(found):
        assert after.physical_offset == before.physical_offset + before.record_size
    assert result.end_offset == store.commit_log.written_offset == found[-1].physical_offset + found[-1].record_size


def test_a_batch_stays_in_one_file(stores: Stores) -> None:
    store = stores.open()
    put_sized(store, FILE_SIZE // 2)
    elements = batch_of(*[b"x" * 9000] * 4)  # each would fit into what is left, all together do not
    result = store.intake.put_batch(message(), elements)

    assert result.physical_offsets[0] == FILE_SIZE
    assert result.physical_offsets[-1] < 2 * FILE_SIZE


def test_all_records_of_a_batch_have_one_store_time(stores: Stores, clock: FakeClock) -> None:
    class Ticking(FakeClock):
        def now_ms(self) -> int:
            self.advance(ms=1)
            return super().now_ms()

    stores.clock = Ticking()
    store = stores.open()
    result = store.intake.put_batch(message(), batch_of(b"a", b"b", b"c"))
    assert {record(store, offset).store_timestamp for offset in result.physical_offsets} == {result.store_timestamp}


@pytest.mark.parametrize(
    ("elements", "sys_flag", "status"),
    [
        ([], 0, PutStatus.MESSAGE_ILLEGAL),
        (batch_of(b"a"), flags.TRANSACTION_PREPARED, PutStatus.MESSAGE_ILLEGAL),
        (batch_of(*[b"x"] * 700), 0, PutStatus.MESSAGE_ILLEGAL),
        (batch_of(b"a" * 2500, b"x" * 2501), 0, PutStatus.MESSAGE_ILLEGAL),
        ([BatchElement(0, b"", b"p" * 32768)], 0, PutStatus.PROPERTIES_SIZE_EXCEEDED),
    ],
    ids=["empty", "transaction", "larger than a file", "large bodies", "properties"],
)
def test_a_batch_is_taken_as_a_whole_or_not_at_all(
    stores: Stores, elements: list[BatchElement], sys_flag: int, status: PutStatus
) -> None:
    store = stores.open(max_message_size=5000)
    result = store.intake.put_batch(message(sys_flag=sys_flag), elements)

    assert result.status is status
    assert result.physical_offsets == []
    assert store.commit_log.written_offset == 0
    assert put(store).queue_offset == 0


# -- the CRC property -----------------------------------------------------------------------------------------


def test_the_crc_property_seals_every_record_and_replaces_an_old_one(stores: Stores) -> None:
    store = stores.open(append_record_crc=True, verify_record_crc=True)
    old = {"a": "1", "__CRC32#": "0000000000"}
    offsets = [put(store, b"one", properties=old).physical_offset, put(store, b"two").physical_offset]
    offsets += store.intake.put_batch(message(), [BatchElement(0, b"three", b"no\x01separator")]).physical_offsets

    for offset in offsets:
        view = store.by_physical_offset(offset)
        assert view is not None
        assert bytes(view[-20:]) == record_crc_property(view)
        assert decode_record(view).properties["__CRC32#"]
    assert bytes(store.by_physical_offset(offsets[0]) or b"").count(b"__CRC32#") == 1
    store.close()
    store = stores.open(append_record_crc=True, verify_record_crc=True)
    assert bodies(store.get(TOPIC, 0, 0)) == [b"one", b"two", b"three"]


@pytest.mark.parametrize("length", [32747, 32748, 32767])
def test_properties_must_leave_room_for_the_crc(stores: Stores, length: int) -> None:
    store = stores.open(append_record_crc=True, commit_log_file_size=1 << 20)
    put(store)
    properties = b"k\x01" + b"v" * (length - 3) + b"\x02"
    large = message()
    large.properties = properties
    result = store.put(large)
    if length <= 32747:
        assert result.ok
    else:
        assert result.status is PutStatus.PROPERTIES_SIZE_EXCEEDED
        assert "32767" in result.remark
    assert put(store).ok


def test_a_missing_separator_counts_towards_the_room_for_the_crc(stores: Stores) -> None:
    store = stores.open(append_record_crc=True, commit_log_file_size=1 << 20)
    put(store)
    large = message()
    large.properties = b"k\x01" + b"v" * (32747 - 2)
    assert store.put(large).status is PutStatus.PROPERTIES_SIZE_EXCEEDED
    batch = store.intake.put_batch(message(), [BatchElement(0, b"", large.properties)])
    assert batch.status is PutStatus.PROPERTIES_SIZE_EXCEEDED


# -- many writers, and writers that fail ------------------------------------------------------------------------


@pytest.mark.usefixtures("hurried_threads")
def test_eight_threads_get_contiguous_offsets_in_log_and_queues(stores: Stores) -> None:
    store = stores.open(commit_log_file_size=1 << 16, dispatch_thread=True)
    each = 400

    def write(number: int) -> None:
        for n in range(each):
            put(store, b"%d:%d" % (number, n), queue_id=n % 3)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.dispatch()

    per_writer: dict[bytes, list[int]] = {}
    total = 0
    for queue_id in range(3):
        offset = 0
        seen: dict[bytes, int] = {}
        while offset < store.max_offset(TOPIC, queue_id):
            got = store.get(TOPIC, queue_id, offset)
            for found in decode_records(got.join()):
                assert found.queue_offset == offset
                offset += 1
                writer, _, number = found.body.partition(b":")
                assert int(number) > seen.get(writer, -1)  # what one thread wrote to a queue stays in order
                seen[writer] = int(number)
                per_writer.setdefault(writer, []).append(int(number))
        total += offset
    assert total == 8 * each
    assert all(sorted(numbers) == list(range(each)) for numbers in per_writer.values())


@pytest.mark.requirement("C103")
def test_when_no_file_can_be_made_the_put_says_so_and_nothing_changes(stores: Stores, clock: FakeClock) -> None:
    disk = FullDisk()
    disk.full = False
    store = stores.open(disk=disk)
    put_sized(store, FILE_SIZE - 8 - EMPTY_RECORD)
    store.commit_log.allocator.stop()  # so that the next file is made by the writer
    disk.full = True
    end = store.commit_log.written_offset

    refused = store.put(message(b"x" * 500))
    assert refused.status is PutStatus.CREATE_MAPPED_FILE_FAILED
    assert "No space left" in refused.remark
    assert store.commit_log.written_offset == end
    clock.advance(seconds=5)
    assert not store.page_cache_busy  # nobody is appending: the failed put has ended
    assert put_sized(store, EMPTY_RECORD).queue_offset == 1  # what still fits is taken
    disk.full = False
    assert put(store, b"x" * 500).queue_offset == 2


# -- raw bytes for replicas --------------------------------------------------------------------------------------


@pytest.mark.requirement("A017", "B025")
@pytest.mark.parametrize("chunk", [1000, 7, 32768])
def test_a_replica_fed_with_raw_bytes_equals_its_master_file_by_file(
    stores: Stores, clock: FakeClock, chunk: int
) -> None:
    master = stores.open("master", index_entries=30)
    for n in range(200):
        put(master, b"x" * (n * 37 % 1500), queue_id=n % 2, properties={"KEYS": f"k{n % 7}", "TAGS": f"t{n % 3}"})
        clock.advance(ms=700)
        master.dispatch()
    replica = stores.open("replica", index_entries=30)
    copy_log(master, replica, 0, chunk)
    replica.dispatch()
    assert replica.max_offset(TOPIC, 0) == master.max_offset(TOPIC, 0) == 100
    master.close()
    replica.close()

    assert files_under(master.paths.commit_log) == files_under(replica.paths.commit_log)
    assert files_under(master.paths.consume_queue) == files_under(replica.paths.consume_queue)
    # Index files are named by the time of their making; their content is the same.
    assert list(files_under(master.paths.index).values()) == list(files_under(replica.paths.index).values())
    assert len(files_under(master.paths.index)) > 2
    assert len(files_under(master.paths.commit_log)) > 2


def test_an_empty_replica_may_begin_at_any_file_of_its_master(stores: Stores) -> None:
    master = stores.open("master")
    fill_files(master, 4)
    master.dispatch()
    replica = stores.open("replica")
    start = 2 * FILE_SIZE
    copy_log(master, replica, start, 5000)
    first = master.by_physical_offset(start)
    assert first is not None

    first_offset = decode_record(first).queue_offset
    assert replica.commit_log.min_offset == start
    assert replica.min_offset(TOPIC, 0) == first_offset
    assert log_bytes(replica) == log_bytes(master)[start:]
    assert replica.get(TOPIC, 0, first_offset).join() == master.get(TOPIC, 0, first_offset).join()
    replica.close()
    replica = stores.open("replica")
    assert (replica.min_offset(TOPIC, 0), replica.max_offset(TOPIC, 0)) == (first_offset, master.max_offset(TOPIC, 0))


def test_a_replica_cannot_begin_within_a_file(stores: Stores) -> None:
    replica = stores.open()
    with pytest.raises(StoreError, match="file"):
        replica.append_raw(100, b"abc")
    assert replica.commit_log.written_offset == 0


def test_raw_bytes_must_continue_where_the_log_ends(stores: Stores) -> None:
    master = stores.open("master")
    end = put(master).end_offset
    replica = stores.open("replica")
    copy_log(master, replica, 0, 1000)
    for offset in (0, end - 1, end + 1):
        with pytest.raises(StoreError, match=str(end)):
            replica.append_raw(offset, b"abc")
    assert log_bytes(replica) == log_bytes(master)


def test_a_record_that_has_only_half_arrived_waits_for_the_rest(stores: Stores) -> None:
    master = stores.open("master")
    put(master, b"one")
    put(master, b"two")
    data = log_bytes(master)
    replica = stores.open("replica")
    replica.append_raw(0, data[:-1])
    replica.dispatch()
    assert bodies(replica.get(TOPIC, 0, 0)) == [b"one"]
    replica.append_raw(len(data) - 1, data[-1:])
    replica.dispatch()
    assert bodies(replica.get(TOPIC, 0, 0)) == [b"one", b"two"]


def test_a_replica_that_becomes_master_goes_on_with_offsets_and_times(stores: Stores, clock: FakeClock) -> None:
    master = stores.open("master")
    clock.advance(hours=1)
    last = fill_files(master, 2)[-1]
    clock.set(clock.now_ms() - 3_600_000)
    replica = stores.open("replica")
    copy_log(master, replica, 0, 1000)
    result = put(replica, b"mine")
    assert result.queue_offset == last.queue_offset + 1
    assert result.physical_offset == last.end_offset
    assert result.store_timestamp == last.store_timestamp  # never before what the master wrote
    replica.dispatch()
    assert bodies(replica.get(TOPIC, 0, result.queue_offset)) == [b"mine"]


def test_raw_reads_stop_at_the_end_of_a_file_and_of_the_log(stores: Stores) -> None:
    store = stores.open()
    fill_files(store, 2)
    end = store.commit_log.written_offset

    first = store.commit_log.raw(FILE_SIZE - 100, 1000)
    assert first is not None
    assert len(first) == 100
    rest = store.commit_log.raw(FILE_SIZE, 1 << 20)
    assert rest is not None
    assert len(rest) == end - FILE_SIZE
    assert store.commit_log.raw(end, 100) is None


# -- everything that is put is got back -----------------------------------------------------------------------------

Batch = list[tuple[int, bytes, str]]
bodies_of_any_size = st.binary(max_size=40) | st.integers(0, 900).map(lambda n: b"x" * n)
puts = st.lists(st.tuples(st.integers(0, 2), bodies_of_any_size, st.text(max_size=5)), max_size=40)


@settings(max_examples=40)
@given(file_size=st.integers(1100, 5000) | st.integers(33_100, 34_000), messages=puts, reopen_at=st.integers(0, 40))
def test_everything_put_is_got_back_in_order_whatever_the_file_size(
    tmp_path_factory: pytest.TempPathFactory, file_size: int, messages: Batch, reopen_at: int
) -> None:
    stores = Stores(tmp_path_factory.mktemp("any"), FakeClock())
    store = stores.open(commit_log_file_size=file_size)
    expected: dict[int, list[tuple[bytes, str]]] = {0: [], 1: [], 2: []}
    for number, (queue_id, body, text) in enumerate(messages):
        if number == reopen_at:
            store.close()
            store = stores.open(commit_log_file_size=file_size)
        value = text.replace("\x01", "").replace("\x02", "")
        put(store, body, queue_id=queue_id, properties={"p": value} if value else {})
        expected[queue_id].append((body, value))
    store.dispatch()

    for queue_id, wanted in expected.items():
        got: list[tuple[bytes, str]] = []
        while len(got) < store.max_offset(TOPIC, queue_id):
            page = store.get(TOPIC, queue_id, len(got), max_count=7)
            got += [(found.body, found.properties.get("p", "")) for found in decode_records(page.join())]
            assert page.next_offset == len(got)
        assert got == wanted
    stores.close()
