"""Batches that are stored by their parts: every file has the bytes that it has when each message is stored as a row."""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyrocket.format.batch import BatchElement, cut_batch, encode_batch, even_batch
from skyrocket.format.large_batch import batch_of
from skyrocket.format.record import pack_host
from skyrocket.model.message import Host
from skyrocket.store import column_records
from skyrocket.store.batch_records import BatchOrigin, PlainBatch
from skyrocket.store.commit_log import CommitLog, PutMessage
from skyrocket.store.disk import DiskStandsStill
from skyrocket.store.message_store import MessageStore
from skyrocket.store.record_run import RecordRun, RunItems
from skyrocket.store.record_tuples import DispatchItem
from skyrocket.store.results import PutResult, PutStatus
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import TOPIC, FullDisk, Stores, UnforcedDisk, message, put

_V4 = pack_host(Host(bytes([10, 0, 0, 7]), 4711))
_V6 = pack_host(Host(bytes([0xFD, *range(15)]), 4711))
_TEXTS = st.sampled_from(
    [
        b"KEYS\x01k1 k2\x02UNIQ_KEY\x010A00000519824E0E2F2A4DA722D40000\x02",
        b"TAGS\x01A\x02UNIQ_KEY\x010A00000519824E0E2F2A4DA722D40001\x02",
        b"TAGS\x01\xc3\xa9\x02",
        b"NOTAGS\x01A\x02",
        b"no\x01separator",
    ]
)
_UNEVEN = st.lists(
    st.builds(BatchElement, st.integers(-(2**31), 2**31 - 1), st.binary(max_size=40), _TEXTS), min_size=1, max_size=9
)
# Texts of one length, which differ in what matters: keys, where they begin, tags, and parts that look like others.
_ALIKE = st.sampled_from(
    [
        [b"UNIQ_KEY\x01%08d\x02WAIT\x01true\x02" % number for number in range(20)],
        [b"UNIQ_KEY\x01%08d\x02TAGS\x01A\x02KEYS\x01k1 %03d\x02" % (n, n) for n in range(20)],
        [b"KEYS\x01k1 b\x02", b"KEYS\x01k1b \x02", b"KEYS\x01 k1b\x02", b"KEYS\x01\xc3\xa9k1\x02"],
        [b"KEYS\x01k1\x02UNIQ_KEY\x01a\x02", b"KEYS\x01k\x02UNIQ_KEY\x01aa\x02", b"UNIQ_KEY\x01k\x02KEYS\x01k1\x02"],
        [b"TAGS\x01A\x02", b"TAGS\x01B\x02", b"XAGS\x01A\x02"],
        [b"NOTAGS\x01A\x02", b"a\x02TAGS\x01A\x02", b"TAGS\x01A\x02\x02\x02"],
        [b"AGS\x01A\x02a\x01T", b"TAGS\x01A\x02a\x01"],
        [b"KEYS\x01k1\x02KEYS\x01", b"KEYS\x01k1\x02KEYS\x02"],
        [b""],
    ]
)
_EVEN_PROPERTIES = st.tuples(_ALIKE, st.integers(0, 2**32), st.integers(1, 30), st.integers(0, 200)).map(
    lambda given: even_elements(*given)
)
_EVEN = st.builds(lambda element, count: [element] * count, _UNEVEN.map(lambda many: many[0]), st.integers(1, 9))
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["batch", "batch", "single", "dispatch", "half", "later", "query"]),
        st.integers(0, 2),  # queue
        _EVEN | _UNEVEN,
        st.sampled_from([_V4, _V6]),
    ),
    min_size=1,
    max_size=12,
)


def even_elements(texts: list[bytes], seed: int, count: int, body_size: int) -> list[BatchElement]:
    dice = Random(seed)
    return [BatchElement(dice.getrandbits(31), dice.randbytes(body_size), dice.choice(texts)) for _ in range(count)]


def put_cut(
    store: MessageStore, elements: list[BatchElement], queue_id: int = 0, host: bytes = _V4, topic: str = TOPIC
) -> RecordRun | PutResult:
    [outcome] = store.intake.put_plain_batches([plain_batch(store, elements, queue_id, host, topic)])
    return outcome


def plain_batch(
    store: MessageStore, elements: list[BatchElement], queue_id: int = 0, host: bytes = _V4, topic: str = TOPIC
) -> PlainBatch:
    body = encode_batch(elements)
    origin = BatchOrigin(0x31, 77, host)
    return PlainBatch(store.queues.get_or_create(topic, queue_id), even_batch(body) or cut_batch(body), origin)


def all_files(root: Path) -> dict[str, bytes]:
    """What a closed store has left, but not what it says of the time of day."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "checkpoint"
    }


def play(store: MessageStore, steps: list[tuple[str, int, list[BatchElement], bytes]], *, by_parts: bool) -> list[int]:
    """Do the steps; returns the places of the records of batches, and what was found in between."""
    seen: list[int] = []
    for kind, queue_id, elements, host in steps:
        if kind == "batch" and by_parts:
            run = put_cut(store, elements, queue_id, host)
            assert isinstance(run, RecordRun)
            seen += [*run.starts, run.parts[0].first_queue_offset, run.end_offset, run.store_timestamp]
        elif kind == "batch":
            told = PutMessage(TOPIC, queue_id, b"", b"", 0, 0x31, 77, host)
            result = store.intake.put_batch(told, elements)
            assert result.ok
            seen += [*result.physical_offsets, result.first_queue_offset, result.end_offset, result.store_timestamp]
        elif kind == "single":
            seen.append(put(store, elements[0].body, queue_id=queue_id, properties={"TAGS": "B"}).physical_offset)
        elif kind == "half":  # in the middle of a record, and perhaps of a batch
            seen.append(store.dispatcher.dispatch(store.commit_log.written_offset // 2))
        elif kind == "dispatch":
            seen.append(store.dispatch())
        elif kind == "query":
            seen += store.index.query(TOPIC + "#k1", 99, 0, 2**62) if store.index is not None else []
        elif kind == "later":
            assert isinstance(store.clock, FakeClock)
            store.clock.advance(ms=1500)
    return seen


@given(steps=_STEPS)
@settings(max_examples=25, deadline=None)
def test_log_queues_and_index_are_the_same_as_of_rows(steps: list[tuple[str, int, list[BatchElement], bytes]]) -> None:
    """Even and uneven batches, IPv6, single messages between them, and dispatch that stops within a batch."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = []
        for by_parts in (False, True):
            root = Path(folder) / str(by_parts)
            opener = Stores(root, FakeClock())
            counted: list[DispatchItem] = []
            store = opener.open(commit_log_file_size=40_000, index_batch_delay_ms=600_000)
            store.add_listener(counted.extend)
            seen = play(store, steps, by_parts=by_parts)
            opener.close()
            items = [(item[0].topic, item[0].queue_id, *item[1:]) for item in counted]
            outcomes.append((seen, items, all_files(root)))
        rows, parts = outcomes
        assert rows[0] == parts[0]
        assert rows[1] == parts[1]
        assert rows[2] == parts[2]


_GROUPS = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 2),  # queue
            st.sampled_from([TOPIC, TOPIC, "%RETRY%" + "T" * 200]),
            st.sampled_from([_V4, _V4, _V6]),
            _EVEN_PROPERTIES | _UNEVEN,
            st.integers(1, 4),  # how often
        ),
        min_size=1,
        max_size=5,
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("together", [1, 30])
@given(groups=_GROUPS, pooled=st.booleans(), with_tags=st.booleans(), store_host=st.sampled_from([_V4, _V6]))
@settings(max_examples=60, deadline=None)
def test_batches_that_are_put_together_leave_the_files_of_rows(
    together: int,
    groups: list[list[tuple[int, str, bytes, list[BatchElement], int]]],
    pooled: bool,
    with_tags: bool,
    store_host: bytes,
) -> None:
    """Of several queues, topics and hosts, even and uneven, with files that end between them."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_records, "_FROM_EVEN", together)
        patch.setattr(column_records, "_FROM_UNEVEN", together)
        outcomes = []
        for by_parts in (False, True):
            root = Path(folder) / str(by_parts)
            opener = Stores(root, FakeClock())
            counted: list[DispatchItem] = []
            store = opener.open(
                commit_log_file_size=60_000, index_batch_delay_ms=600_000, transient_pool=pooled, index_tags=with_tags
            )
            store.commit_log.store_host = store_host
            store.add_listener(counted.extend)
            seen: list[int] = []
            for group in groups:
                each = [one for *one, times in group for _ in range(times)]
                seen += put_together(store, each) if by_parts else put_each(store, each)
                store.dispatch()
            opener.close()
            items = [(item[0].topic, item[0].queue_id, *item[1:]) for item in counted]
            outcomes.append((seen, items, all_files(root)))
        rows, parts = outcomes
        assert rows[0] == parts[0]
        assert rows[1] == parts[1]
        assert rows[2] == parts[2]


def put_together(store: MessageStore, batches: list[list[Any]]) -> list[int]:
    """Where the records are, and what else the broker is told."""
    plain = [plain_batch(store, elements, queue_id, host, topic) for queue_id, topic, host, elements in batches]
    seen: list[int] = []
    for run in store.intake.put_plain_batches(plain):
        assert isinstance(run, RecordRun)
        for part in run.parts:
            seen += [*run.starts[part.at : part.end], part.first_queue_offset, run.end_of(part), run.store_timestamp]
    return seen


def put_each(store: MessageStore, batches: list[list[Any]]) -> list[int]:
    seen: list[int] = []
    for queue_id, topic, host, elements in batches:
        result = store.intake.put_batch(PutMessage(topic, queue_id, b"", b"", 0, 0x31, 77, host), elements)
        assert result.ok
        seen += [*result.physical_offsets, result.first_queue_offset, result.end_offset, result.store_timestamp]
    return seen


_ODD = [BatchElement(3, b"x" * 70, b"k\x01ends in a zero\0")]


@pytest.mark.parametrize("kind", [{}, {"append_record_crc": True}, {"transient_pool": True}, {"multi_dispatch": True}])
@given(
    batches=st.lists(
        st.tuples(
            st.sampled_from([TOPIC, TOPIC, "Whole", "%RETRY%" + "T" * 300]),
            st.sampled_from([0, 1, -1]),
            st.sampled_from([0, 4]),
            _EVEN_PROPERTIES | _EVEN | _UNEVEN | st.just(_ODD) | st.just([BatchElement(0, b"x" * 3000, b"")] * 5),
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=25, deadline=None)
def test_a_batch_that_is_put_as_it_came_ends_as_its_elements_do(
    kind: dict[str, Any], batches: list[tuple[str, int, int, list[BatchElement]]]
) -> None:
    """Also in queues of batches, in transactions, with topics and queues that are refused, and too large ones."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = []
        for as_it_came in (False, True):
            root = Path(folder) / str(as_it_came)
            opener = Stores(root, FakeClock())
            store = opener.open(
                is_batch_topic=lambda topic: topic == "Whole",
                commit_log_file_size=60_000,
                max_message_size=10_000,
                **kind,
            )
            results = []
            for topic, queue_id, sys_flag, elements in batches:
                told = PutMessage(topic, queue_id, b"", b"", 0, sys_flag, 77, _V6 if len(elements) % 2 else _V4)
                results.append(
                    store.intake.put_batch(told, batch_of(encode_batch(elements)) if as_it_came else elements)
                )
            refused = store.statistics.put_refused
            opener.close()
            outcomes.append((results, refused, all_files(root)))
        assert outcomes[0] == outcomes[1]


def test_batches_of_a_turn_that_do_not_fit_are_refused_one_by_one(stores: Stores) -> None:
    store = stores.open(max_message_size=100_000)
    sizes = (10, 9000, 20, 9000, 30)
    batches = [plain_batch(store, [BatchElement(0, b"x" * size, b"a\x01b\x02")] * 8) for size in sizes]
    outcomes = store.intake.put_plain_batches(batches)
    taken = [run for run in outcomes if isinstance(run, RecordRun)]
    assert [isinstance(outcome, RecordRun) for outcome in outcomes] == [True, False, True, False, True]
    assert [part.first_queue_offset for run in taken for part in run.parts] == [0, 8, 16]


@pytest.mark.requirement("C093")
def test_a_batch_stored_by_its_parts_stays_in_one_file_or_is_not_taken(stores: Stores) -> None:
    store = stores.open(max_message_size=100_000)
    put(store, b"x" * 40_000)
    run = put_cut(store, [BatchElement(0, b"x" * 9000, b"a\x01b\x02")] * 4)
    assert isinstance(run, RecordRun)
    assert run.starts[0] == 65_536

    refused = put_cut(store, [BatchElement(0, b"x" * 9000, b"a\x01b\x02")] * 8)
    assert isinstance(refused, PutResult)
    assert refused.status is PutStatus.MESSAGE_ILLEGAL
    assert put(store).queue_offset == 5


def test_a_full_disk_takes_no_batch(stores: Stores) -> None:
    disk = FullDisk()
    store = stores.open(disk=disk)
    disk.full = True
    refused = put_cut(store, [BatchElement(0, b"x", b"a\x01b\x02")])
    assert isinstance(refused, PutResult)
    assert refused.status is PutStatus.CREATE_MAPPED_FILE_FAILED


class FailingDisk(UnforcedDisk):
    """One write fails, and those after it would not."""

    fails = False

    def write_at(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
        if self.fails:
            self.fails = False
            raise OSError(5, "Input/output error")
        super().write_at(fd, data, position)


def refusals(store: MessageStore, sizes: Iterable[int]) -> list[PutStatus | None]:
    """What becomes of batches of one turn; None is taken."""
    batches = [plain_batch(store, [BatchElement(0, b"x" * size, b"a\x01b\x02")] * 8) for size in sizes]
    outcomes = store.intake.put_plain_batches(batches)
    return [outcome.status if isinstance(outcome, PutResult) else None for outcome in outcomes]


@pytest.mark.parametrize("size", [10, 3000], ids=["together", "one by one"])
def test_after_a_write_that_failed_no_batch_is_taken(stores: Stores, size: int) -> None:
    disk = FailingDisk()
    store = stores.open(disk=disk, preallocate_bytes=32_768)
    put(store)
    disk.fails = True
    assert refusals(store, [size] * 3) == [PutStatus.SERVICE_NOT_AVAILABLE] * 3


def test_after_messages_of_its_turn_that_could_not_be_written_no_batch_is_taken(stores: Stores) -> None:
    disk = FailingDisk()
    store = stores.open(disk=disk)
    put(store)
    disk.fails = True
    assert store.put(message()).status is PutStatus.SERVICE_NOT_AVAILABLE
    end = store.commit_log.written_offset
    assert refusals(store, [10] * 3) == [PutStatus.SERVICE_NOT_AVAILABLE] * 3
    assert store.commit_log.written_offset == end


def test_a_disk_that_stands_still_is_waited_for_once_by_all_batches_of_a_turn(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stores.open()
    put(store)
    asked: list[int] = []

    def stands_still(_: CommitLog, __: object, total: int) -> list[RecordRun]:
        asked.append(total)  # after as much as a second
        raise DiskStandsStill("no blocks are reserved yet")

    monkeypatch.setattr(CommitLog, "append_batches", stands_still)
    assert refusals(store, [3000] * 9) == [PutStatus.OS_PAGE_CACHE_BUSY] * 9
    assert len(asked) == 1


def test_what_waits_for_the_index_counts_every_message_of_a_batch(stores: Stores) -> None:
    store = stores.open(index_batch_records=7, index_batch_delay_ms=600_000)
    assert store.index is not None
    keyed = BatchElement(0, b"x", b"KEYS\x01k1\x02")
    put_cut(store, [keyed] * 6)
    store.dispatch()
    assert store.index.backlog == 6
    put(store, properties={"KEYS": "k1"})
    store.dispatch()
    assert store.index.backlog == 0
    put_cut(store, [keyed] * 20)
    store.dispatch()
    assert store.index.backlog == 0
    assert len(store.index.query(TOPIC + "#k1", 99, 0, 2**62)) == 27


def test_runs_stay_whole_where_dispatch_may_not_see_those_behind_them(stores: Stores) -> None:
    """With SYNC_FLUSH, where under load there is always something that the disk does not have."""
    store = stores.open(preallocate_bytes=32_768)
    put(store)
    store.dispatch()
    told: list[bool] = []
    store.add_listener(lambda items: told.append(isinstance(cast("RunItems", items).appended[0], RecordRun)))
    elements = [BatchElement(0, b"x", b"TAGS\x01A\x02")] * 30
    put_cut(store, elements)
    end = store.commit_log.written_offset
    put_cut(store, elements)
    assert store.dispatcher.dispatch(end) == 30
    assert told == [True]
    assert [isinstance(one, RecordRun) for one in store.commit_log.pending] == [True]
    assert store.dispatcher.dispatch(end + 200) == 1
    assert store.dispatch() == 29
    assert store.max_offset(TOPIC, 0) == 61


def test_a_listener_sees_the_messages_of_a_batch_one_by_one(stores: Stores) -> None:
    store = stores.open()
    store.put(message())
    told: list[int] = []
    store.add_listener(lambda items: told.append(len(items)))
    store.add_listener(lambda items: told.append(items[-1][4]))
    store.add_listener(lambda items: told.extend(item[4] for item in items[1:]))
    put_cut(store, [BatchElement(0, b"x", b"a\x01b\x02")] * 3)
    assert store.dispatch() == 4
    assert told == [4, 3, 1, 2, 3]
