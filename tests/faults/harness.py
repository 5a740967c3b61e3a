"""What the fault tests share: a small store, a ledger of what it promised, and the check that it kept the promise.

nothing acknowledged as flushed is lost; what was acknowledged survives the death of the process
nothing that was never put appears; queues are numbered without gaps
what is lost by a power cut is the end of the log, never something in the middle
"""

import gc
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from skyrocket.config.sections import FlushDiskType, StoreConfig
from skyrocket.errors import CorruptFile, CorruptRecord
from skyrocket.format import sys_flag as flags
from skyrocket.format.batch import BatchElement, cut_batch, encode_batch, even_batch
from skyrocket.format.properties import encode_properties, find_property
from skyrocket.format.record import decode_record, read_head
from skyrocket.model.message import StoredMessage
from skyrocket.store.batch_records import BatchOrigin, PlainBatch
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore
from skyrocket.store.record_run import RecordRun
from skyrocket.store.results import Durability, GetStatus, PutStatus
from skyrocket.testing.clock import FakeClock
from skyrocket.testing.faulty_disk import FaultyDisk, PowerCut

NEVER_MS = 3_600_000
WAIT_SECONDS = 10.0
BATCH_TOPIC = "batches"


def small_config(**changes: Any) -> StoreConfig:
    """Files so small that everything rolls over soon, and no thread that works by itself."""
    settings: dict[str, Any] = {
        "commit_log_file_size": 4096,
        "consume_queue_file_size": 200,
        "batch_queue_file_size": 46 * 4,
        "index_slots": 11,
        "index_entries": 24,
        "preallocate_bytes": 4096,
        "dispatch_thread": False,
        "flush_interval_ms": NEVER_MS,
        "queue_flush_interval_ms": NEVER_MS,
        "checkpoint_interval_ms": NEVER_MS,
        "clean_first_delay_ms": NEVER_MS,
        "index_batch_records": 8,
        "delete_pause_ms": 0,
        "delete_batch": 1,
        "max_mapped_log_files": 3,
        "max_open_queue_files": 8,
        "max_mapped_index_files": 2,
    }
    return StoreConfig(**(settings | changes))


SYNC = {"flush_disk_type": FlushDiskType.SYNC_FLUSH}


def new_clock() -> FakeClock:
    """Begins now: the age of files is told by the real file system."""
    return FakeClock(time.time_ns() // 1_000_000)


def open_store(root: Path, config: StoreConfig, clock: FakeClock, disk: Disk | None = None) -> MessageStore:
    store = MessageStore(
        root, config, clock=clock, disk=disk, is_batch_topic=lambda topic: topic == BATCH_TOPIC, memory_bytes=1 << 40
    )
    try:
        store.open()
    except PowerCut:
        abandon(store)
        raise
    return store


def abandon(store: MessageStore) -> None:
    """Let go of a store as a killed process would: nothing more is written, its threads end, its lock is free."""
    disk = store.disk
    if isinstance(disk, FaultyDisk):
        disk.crash()
    store._open = False
    store.gate.close()
    store._stop.set()
    store.cleaner._stop.set()
    allocator, writer = store.commit_log.allocator, store.commit_log.writer
    for condition, owner in (
        (store.flusher._condition, store.flusher),
        (allocator._condition, allocator),
        (writer._condition, writer),
    ):
        with condition:
            owner._stopped = True
            condition.notify_all()
    threads = [*store._threads, store.cleaner._thread, store.flusher._thread, allocator._thread]
    if writer._thread is not None:
        threads.append(writer._thread)
    if store.index is not None:
        threads += store.index._syncing
    for thread in threads:
        if thread.ident is not None:
            thread.join(WAIT_SECONDS)
            assert not thread.is_alive(), f"{thread.name} hangs"
    ready = store.commit_log.allocator._ready
    if ready is not None:
        store.commit_log.allocator._ready = None
        disk.close(ready.fd)
    store._let_go()
    if isinstance(disk, FaultyDisk):
        disk.close_all()


class Survives(Enum):
    """Which messages must be there."""

    ACKNOWLEDGED = "every put that was answered"
    FLUSHED = "every put that was answered as being on disk"


@dataclass(slots=True)
class Put:
    """A message that was put, and how far its acknowledgement went."""

    topic: str
    queue_id: int
    body: bytes
    properties: bytes
    born_timestamp: int
    messages: int = 1
    queue_offset: int = -1
    physical_offset: int = -1
    end_offset: int = -1
    durability: Durability = Durability.NONE

    @property
    def key(self) -> str:
        key = find_property(self.properties, b"UNIQ_KEY")
        assert key is not None
        return key.decode()

    def is_stored_as(self, message: StoredMessage, stored_properties: bytes) -> bool:
        return (
            (message.topic, message.queue_id, message.born_timestamp)
            == (self.topic, self.queue_id, self.born_timestamp)
            and message.body == self.body
            and message.flag == len(self.body)
            and message.sys_flag == (flags.INNER_BATCH if self.messages > 1 else 0)
            # The store itself adds to the end: offsets of inner batches, the CRC of the record.
            and stored_properties.startswith(self.properties)
        )


@dataclass(slots=True)
class Ledger:
    """Everything that was put into a store directory, over all its lives."""

    puts: list[Put] = field(default_factory=list)
    numbers: int = 0
    batches: int = 0

    def new(self, topic: str, queue_id: int, clock: FakeClock, body_bytes: int = 40, messages: int = 1) -> Put:
        self.numbers += 1
        number = self.numbers
        body = (b"%06d " % number + bytes((number * 7 + i) % 256 for i in range(body_bytes)))[: max(body_bytes, 7)]
        names = {"UNIQ_KEY": f"U{number:08d}", "KEYS": f"key-{number % 5}", "TAGS": "ab"[number % 2]}
        if messages > 1:
            names["INNER_NUM"] = str(messages)
        put = Put(topic, queue_id, body, encode_properties(names), clock.now_ms() - 5, messages)
        self.puts.append(put)
        return put

    @property
    def queues(self) -> set[tuple[str, int]]:
        return {(put.topic, put.queue_id) for put in self.puts}

    def flushed(self, end_offset: int) -> None:
        """Everything before an offset was reported as being on disk."""
        for put in self.puts:
            if put.durability is not Durability.NONE and put.end_offset <= end_offset:
                put.durability = Durability.DISK


class Driver:
    """Uses a store and keeps the ledger."""

    def __init__(self, store: MessageStore, ledger: Ledger, clock: FakeClock) -> None:
        self.store = store
        self.ledger = ledger
        self.clock = clock

    def put(self, topic: str, queue_id: int = 0, body_bytes: int = 40, messages: int = 1) -> PutStatus:
        put = self.ledger.new(topic, queue_id, self.clock, body_bytes, messages)
        self.clock.advance(ms=3)
        result = self.store.put(
            PutMessage(
                topic,
                queue_id,
                put.body,
                put.properties,
                flag=len(put.body),
                sys_flag=flags.INNER_BATCH if messages > 1 else 0,
                born_timestamp=put.born_timestamp,
            )
        )
        if result.ok:
            put.queue_offset, put.physical_offset = result.queue_offset, result.physical_offset
            put.end_offset, put.durability = result.end_offset, result.durability
        else:
            assert result.remark
        return result.status

    def put_batch(self, topic: str, queue_id: int, count: int, body_bytes: int = 30) -> PutStatus:
        """Put a batch; every second one by its parts, as brokers do with most."""
        puts = [self.ledger.new(topic, queue_id, self.clock, body_bytes) for _ in range(count)]
        self.clock.advance(ms=3)
        self.ledger.batches += 1
        elements = [BatchElement(len(put.body), put.body, put.properties) for put in puts]
        queue = self.store.queues.by_key.get((topic, queue_id))
        is_plain = queue is not None and queue.simple and self.store.intake.max_plain_body >= body_bytes * count
        if self.ledger.batches % 2 or queue is None or not is_plain:
            return self._put_elements(puts, elements)
        origin = BatchOrigin(0, puts[0].born_timestamp, PutMessage(topic, queue_id, b"").born_host)
        body = encode_batch(elements)
        [run] = self.store.intake.put_plain_batches([PlainBatch(queue, even_batch(body) or cut_batch(body), origin)])
        if not isinstance(run, RecordRun):
            assert run.remark
            return run.status
        durability = Durability.BUFFER if self.store.config.transient_pool else Durability.MEMORY
        for put, (_, start, size, _, queue_offset, _, _) in zip(puts, run.items(), strict=True):
            put.queue_offset, put.physical_offset = queue_offset, start
            put.end_offset, put.durability = start + size, durability
        return PutStatus.PUT_OK

    def _put_elements(self, puts: list[Put], elements: list[BatchElement]) -> PutStatus:
        message = PutMessage(puts[0].topic, puts[0].queue_id, b"", born_timestamp=puts[0].born_timestamp)
        result = self.store.intake.put_batch(message, elements)
        if result.ok:
            ends = [*result.physical_offsets[1:], result.end_offset]
            for number, (put, start, end) in enumerate(zip(puts, result.physical_offsets, ends, strict=True)):
                put.queue_offset, put.physical_offset = result.first_queue_offset + number, start
                put.end_offset, put.durability = end, result.durability
        else:
            assert result.remark
        return result.status

    def wait_disk(self) -> bool:
        """Wait, as a client of SYNC_FLUSH does, until everything acknowledged so far is on disk."""
        end = max((put.end_offset for put in self.ledger.puts), default=-1)
        answers: list[bool] = []
        self.store.flusher.when_flushed(end, answers.append)
        deadline = time.monotonic() + WAIT_SECONDS
        while not answers:
            disk = self.store.disk
            if isinstance(disk, FaultyDisk) and disk.crashed:
                raise PowerCut
            assert time.monotonic() < deadline, "the waiter was never answered"
            time.sleep(0.0002)
        if answers[0]:
            self.ledger.flushed(end)
        return answers[0]

    def flush(self) -> bool:
        end = self.store.commit_log.readable_offset
        ok = self.store.flush()
        if ok:
            self.ledger.flushed(end)
        return ok

    def close(self) -> None:
        self.store.close()
        if self.store.failure is None:
            self.ledger.flushed(1 << 62)


# -- the check ----------------------------------------------------------------------------------------------


def read_queue(store: MessageStore, topic: str, queue_id: int) -> list[tuple[StoredMessage, bytes]]:
    """Every message of a queue with its stored properties, checksums compared as a client does."""
    found: list[tuple[StoredMessage, bytes]] = []
    offset = max(store.min_offset(topic, queue_id), 0)
    while True:
        result = store.get(topic, queue_id, offset)
        for view in result.slices:
            position = 0
            while position < len(view):
                message = decode_record(view, position, check_crc=True)
                head = read_head(view, position, message.physical_offset)
                assert head is not None
                found.append((message, head.properties))
                position += message.record_size
        if result.status not in (GetStatus.FOUND, GetStatus.NO_MATCHED_MESSAGE, GetStatus.MESSAGE_WAS_REMOVING):
            return found
        assert result.next_offset > offset
        offset = result.next_offset


def check_promise(store: MessageStore, ledger: Ledger, survives: Survives, *, with_index: bool = True) -> int:
    """Compare a store that was opened again with the ledger; returns how many messages it still has."""
    store.dispatch()
    present: dict[int, Put] = {}
    by_key = {put.key: put for put in ledger.puts}
    for topic, queue_id in store.queues.by_key:
        assert (topic, queue_id) in ledger.queues, f"a queue that nobody made: {topic} {queue_id}"
        expected_offset: int | None = None
        for message, properties in read_queue(store, topic, queue_id):
            assert expected_offset in (None, message.queue_offset), "a gap in a queue"
            put = by_key[message.properties["UNIQ_KEY"]]
            assert put.is_stored_as(message, properties), f"{message} differs from {put}"
            if put.durability is not Durability.NONE:
                assert put.queue_offset == message.queue_offset
                assert put.physical_offset == message.physical_offset
            expected_offset = message.queue_offset + put.messages
            present[id(put)] = put
            if with_index:
                _check_index(store, put, message.physical_offset)
        assert expected_offset in (None, store.max_offset(topic, queue_id))
    _check_losses(store, ledger, survives, present)
    return len(present)


def _check_losses(store: MessageStore, ledger: Ledger, survives: Survives, present: dict[int, Put]) -> None:
    first_lost = 1 << 62
    for put in ledger.puts:
        if put.durability is Durability.NONE or put.physical_offset < store.commit_log.min_offset:
            continue
        if id(put) in present:
            assert put.physical_offset < first_lost, f"{put} is there, an older message is not"
            continue
        must_be_there = survives is Survives.ACKNOWLEDGED or put.durability is Durability.DISK
        assert not must_be_there, f"lost: {put}"
        first_lost = min(first_lost, put.physical_offset)


def _check_index(store: MessageStore, put: Put, physical_offset: int) -> None:
    offsets = [decode_record(view).physical_offset for view in store.query_unique_key(put.topic, put.key)]
    assert physical_offset in offsets, f"not in the index: {put}"


def check_goes_on(driver: Driver) -> None:
    """After all that the store works: new messages get the next offsets and are read back."""
    for topic, queue_id in sorted(driver.ledger.queues):
        before = driver.store.max_offset(topic, queue_id)
        assert driver.put(topic, queue_id, messages=2 if topic == BATCH_TOPIC else 1) is PutStatus.PUT_OK
        assert driver.ledger.puts[-1].queue_offset == before
    assert driver.flush()


def reopen_and_check(
    root: Path, ledger: Ledger, config: StoreConfig, clock: FakeClock, survives: Survives, *, twice: bool = True
) -> int:
    """Open with the real disk, check, go on, close cleanly, open and check again."""
    clock.advance(seconds=5)
    with closing(open_store(root, config, clock), ledger, clock) as driver:
        present = check_promise(driver.store, ledger, survives)
        forget_lost(driver.store, ledger)
        check_goes_on(driver)
    assert not (root / "abort").exists()
    if twice:
        clock.advance(seconds=5)
        with closing(open_store(root, config, clock), ledger, clock) as driver:
            assert driver.store.recovery is not None
            assert driver.store.recovery.clean
            check_promise(driver.store, ledger, Survives.ACKNOWLEDGED)
    return present


def forget_lost(store: MessageStore, ledger: Ledger) -> None:
    """What a power cut took was checked; from now on the ledger is what the store has."""
    kept = {
        message.properties["UNIQ_KEY"]: message
        for topic, queue_id in store.queues.by_key
        for message, _ in read_queue(store, topic, queue_id)
    }
    for put in ledger.puts:
        message = kept.get(put.key)
        if message is None:
            put.durability, put.end_offset = Durability.NONE, -1
        else:
            put.queue_offset, put.physical_offset = message.queue_offset, message.physical_offset
            put.end_offset = message.physical_offset + message.record_size
            put.durability = max(put.durability, Durability.MEMORY)


@contextmanager
def closing(store: MessageStore, ledger: Ledger, clock: FakeClock) -> Iterator[Driver]:
    """A driver whose store is closed at the end, whatever happens."""
    driver = Driver(store, ledger, clock)
    try:
        yield driver
    except BaseException:
        abandon(store)
        raise
    driver.close()


REFUSALS = (CorruptFile, CorruptRecord)


def check_refusal(error: Exception, root: Path) -> None:
    """A refusal names the file, the place and what to do."""
    text = str(error)
    if isinstance(error, CorruptFile):
        assert str(root) in str(error.path)
        assert error.remedy
        assert error.remedy in text
        assert error.reason in text
    else:
        assert "damaged record" in text


def copy_store(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target


# -- leaks --------------------------------------------------------------------------------------------------


def open_descriptors() -> dict[str, str]:
    """What this process has open below a store directory, by descriptor."""
    found = {}
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:
            continue
        if any(part in target for part in ("/commitlog/", "/consumequeue/", "/index/", "/batchconsumequeue/", "/lock")):
            found[link.name] = target
    return found


@contextmanager
def no_leaks() -> Iterator[None]:
    """Assert that threads and descriptors are gone at the end, and that no thread died of anything but a crash."""
    deaths: list[BaseException | None] = []
    before = open_descriptors()
    threads_before = set(threading.enumerate())
    hook = threading.excepthook

    def on_death(args: Any) -> None:
        if not issubclass(args.exc_type, PowerCut):
            deaths.append(args.exc_value)
            hook(args)

    threading.excepthook = on_death
    try:
        yield
    finally:
        threading.excepthook = hook
    gc.collect()
    assert not deaths, f"a thread died: {deaths}"
    alive = [thread.name for thread in set(threading.enumerate()) - threads_before if thread.name.startswith("store-")]
    assert not alive, f"threads are left: {alive}"
    left = {fd: path for fd, path in open_descriptors().items() if fd not in before}
    assert not left, f"descriptors are left: {left}"


def copy_ledger(ledger: Ledger) -> Ledger:
    return deepcopy(ledger)


def copy_clock(clock: FakeClock) -> FakeClock:
    return FakeClock(clock.now_ms())
