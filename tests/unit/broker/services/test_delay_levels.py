"""Delivery of delayed messages, with a clock that stands still unless it is moved."""

import asyncio
import errno
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skyrocket.broker.delay.delay_levels import (
    FIRST_LOOK_SECONDS,
    GROUP_MESSAGES,
    REST_SECONDS,
    RETRY_SECONDS,
    DelayLevels,
)
from skyrocket.broker.delay.delay_offsets import DelayOffsetTable
from skyrocket.broker.rules.put_rules import PutRules
from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import DELAY_OFFSETS
from skyrocket.format.java_hash import java_hash
from skyrocket.format.properties import encode_properties
from skyrocket.format.record import decode_record, decode_records, pack_host
from skyrocket.model.delay_level import DEFAULT_DELAY_LEVELS, parse_delay_levels
from skyrocket.model.message import StoredMessage
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import Durability, PutResult, PutStatus
from skyrocket.testing.clock import FakeClock
from skyrocket.testing.faulty_disk import FaultyDisk
from tests.golden_store import GoldenStore
from tests.unit.store.stores import UnforcedDisk, dispatch, small_config
from tests.waiting import until

SCHEDULE = "SCHEDULE_TOPIC_XXXX"
DELAYS = (1000, 5000, 10_000)
TOPIC = "Orders"


class Delayed:
    """A store with its delivery service, and a producer."""

    def __init__(
        self,
        root: Path,
        clock: FakeClock,
        delays: tuple[int, ...] = DELAYS,
        disk: Disk | None = None,
        **changes: Any,
    ) -> None:
        self.root, self.clock = root, clock
        levels = " ".join(f"{delay // 1000}s" for delay in delays)
        chosen = disk or UnforcedDisk()
        self.store = MessageStore(root, small_config(message_delay_levels=levels, **changes), clock=clock, disk=chosen)
        self.store.open()
        encode = partial(DELAY_OFFSETS.encode, dialect=Dialect.V5_4)
        path = str(root / "config" / "delayOffset.json")
        self.offsets = DelayOffsetTable(ConfigFile(chosen, path, DELAY_OFFSETS.decode, encode), clock)
        self.levels = DelayLevels(self.store, self.offsets, clock, delays)
        self.levels.load()
        self.rules = PutRules(delays)

    def put(self, body: bytes, level: int, **fields: Any) -> PutResult:
        properties = encode_properties({"TAGS": "red", "DELAY": str(level)})
        message = PutMessage(TOPIC, 1, body, properties, born_timestamp=7, **fields)
        self.rules.apply(message)
        result = self.store.put(message)
        dispatch(self.store)
        return result

    def fire(self) -> int:
        """Deliver all that is due."""
        passed = 0
        while step := self.levels.fire_due(self.clock.now_ms()):
            passed += step
        dispatch(self.store)
        return passed

    def delivered(self, topic: str = TOPIC, queue_id: int = 1) -> list[StoredMessage]:
        found: list[StoredMessage] = []
        while (got := self.store.get(topic, queue_id, len(found), 32)).count:
            found += decode_records(got.join())
        return found

    def bodies(self) -> list[bytes]:
        return [each.body for each in self.delivered()]

    def stop(self) -> None:
        self.levels.save()
        self.store.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def delayed(tmp_path: Path, clock: FakeClock) -> Iterator[Delayed]:
    given = Delayed(tmp_path / "store", clock)
    yield given
    given.stop()


@pytest.mark.requirement("A050")
@pytest.mark.requirement("C136")
@pytest.mark.requirement("C139")
def test_a_message_is_delivered_when_its_time_has_come_and_not_before(delayed: Delayed, clock: FakeClock) -> None:
    stored = delayed.put(
        b"later", 2, flag=5, reconsume_times=3, born_host=b"\xc0\x00\x02\x07" + (4321).to_bytes(4, "big"), sys_flag=1
    )
    assert delayed.levels.next_due_ms(clock.now_ms()) == clock.now_ms() + 5000
    clock.advance(ms=4999)
    assert delayed.fire() == 0
    clock.advance(ms=1)
    assert delayed.fire() == 1
    (found,) = delayed.delivered()
    assert (found.topic, found.queue_id, found.queue_offset, found.body) == (TOPIC, 1, 0, b"later")
    assert (found.flag, found.sys_flag, found.reconsume_times) == (5, 1, 3)
    assert (found.born_timestamp, found.born_host.port, found.store_timestamp) == (7, 4321, clock.now_ms())
    assert found.properties == {"TAGS": "red", "DELAY": "2", "REAL_TOPIC": TOPIC, "REAL_QID": "1"}
    scheduled = next(decode_records(delayed.store.get(SCHEDULE, 1, 0).join()))
    assert scheduled.physical_offset == stored.physical_offset
    assert delayed.store.get(TOPIC, 1, 0, tags_codes={java_hash("red")}).count == 1
    assert delayed.fire() == 0


def test_the_broker_that_stored_a_message_first_is_still_named(delayed: Delayed, clock: FakeClock) -> None:
    other = b"\xc0\x00\x02\x09" + (10911).to_bytes(4, "big")
    delayed.put(b"from a master that is gone", 1, store_host=other)
    clock.advance(seconds=1)
    delayed.fire()
    assert pack_host(delayed.delivered()[0].store_host) == other


@pytest.mark.requirement("A049")
def test_messages_of_a_level_keep_their_order_through_many_groups(delayed: Delayed, clock: FakeClock) -> None:
    expected = [b"%d" % i for i in range(2 * GROUP_MESSAGES + 10)]
    for body in expected:
        delayed.put(body, 1)
    clock.advance(seconds=1)
    assert delayed.levels.fire_due(clock.now_ms()) == GROUP_MESSAGES
    delayed.fire()
    assert delayed.bodies() == expected


def test_the_level_that_has_waited_longest_comes_first(delayed: Delayed, clock: FakeClock) -> None:
    delayed.put(b"long", 3)
    clock.advance(seconds=9.5)
    delayed.put(b"short", 1)
    clock.advance(hours=1)
    delayed.fire()
    assert delayed.bodies() == [b"long", b"short"]


def test_large_messages_make_small_groups(tmp_path: Path, clock: FakeClock) -> None:
    delayed = Delayed(tmp_path, clock, commit_log_file_size=8 << 20)
    for _ in range(5):
        delayed.put(bytes(400 << 10), 1)
    clock.advance(seconds=1)
    assert [delayed.levels.fire_due(clock.now_ms()) for _ in range(4)] == [2, 2, 1, 0]
    delayed.stop()


@pytest.mark.requirement("C137")
def test_a_time_later_than_any_message_could_have_is_corrected(delayed: Delayed, clock: FakeClock) -> None:
    delayed.put(b"from the future", 2)
    clock.set(clock.now_ms() - 1)
    assert delayed.fire() == 1
    assert delayed.bodies() == [b"from the future"]


@pytest.mark.requirement("C138")
def test_the_half_of_a_transaction_and_what_has_no_place_are_dropped(delayed: Delayed, clock: FakeClock) -> None:
    for properties in (
        {"DELAY": "1", "REAL_TOPIC": "RMQ_SYS_TRANS_HALF_TOPIC", "REAL_QID": "0"},
        {"DELAY": "1", "REAL_TOPIC": TOPIC},
        {"DELAY": "1", "REAL_TOPIC": TOPIC, "REAL_QID": "x"},
    ):
        assert delayed.store.put(PutMessage(SCHEDULE, 0, b"x", encode_properties(properties))).ok
    delayed.put(b"good", 1)
    clock.advance(seconds=1)
    assert delayed.fire() == 4
    assert delayed.bodies() == [b"good"]
    assert delayed.store.max_offset("RMQ_SYS_TRANS_HALF_TOPIC", 0) == 0
    progress = delayed.levels.progress()[0]
    assert (progress.delivered, progress.dropped, progress.pending) == (1, 3, 0)


@pytest.mark.requirement("C140")
def test_what_is_not_taken_is_tried_again_and_nothing_twice(
    delayed: Delayed, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for body in (b"0", b"1", b"2", b"3"):
        delayed.put(body, 1)
    clock.advance(seconds=1)
    real = delayed.store.intake.put_group

    def refuses(messages: list[PutMessage]) -> list[PutResult]:
        kept = real([each for each in messages if each.body != b"1"])
        refused = PutResult(PutStatus.CREATE_MAPPED_FILE_FAILED, -1, -1, 0, 0, Durability.NONE, -1)
        return [kept.pop(0) if each.body != b"1" else refused for each in messages]

    monkeypatch.setattr(delayed.store.intake, "put_group", refuses)
    assert delayed.fire() == 1
    assert delayed.levels.progress()[0].pending == 3
    assert delayed.fire() == 0  # it rests
    clock.advance(seconds=RETRY_SECONDS)
    assert delayed.fire() == 0  # still refused
    monkeypatch.setattr(delayed.store.intake, "put_group", real)
    clock.advance(seconds=RETRY_SECONDS)
    delayed.fire()
    assert Counter(delayed.bodies()) == {b"0": 1, b"1": 1, b"2": 1, b"3": 1}


def test_what_the_store_will_never_take_does_not_hold_up_its_level(tmp_path: Path, clock: FakeClock) -> None:
    """Anybody may ask for a light queue that cannot be; where the message waits it is not looked at."""
    delayed = Delayed(tmp_path / "store", clock, multi_dispatch=True)
    properties = {"DELAY": "1", "REAL_TOPIC": TOPIC, "REAL_QID": "1", "INNER_MULTI_DISPATCH": "%LMQ%a/b"}
    delayed.put(b"before", 1)
    assert delayed.store.put(PutMessage(SCHEDULE, 0, b"x", encode_properties(properties))).ok
    delayed.put(b"behind", 1)
    clock.advance(seconds=1)
    assert delayed.fire() == 3
    assert delayed.bodies() == [b"before", b"behind"]
    progress = delayed.levels.progress()[0]
    assert (progress.delivered, progress.dropped, progress.pending) == (2, 1, 0)
    delayed.stop()


def test_a_full_disk_delays_and_loses_nothing(tmp_path: Path, clock: FakeClock) -> None:
    disk = FaultyDisk(tmp_path)
    delayed = Delayed(tmp_path, clock, disk=disk)
    for i in range(20):
        delayed.put(bytes([i]) * 3000, 1)
    clock.advance(seconds=1)
    disk.fill()
    delayed.fire()
    assert delayed.levels.progress()[0].pending > 0
    disk.free()
    for _ in range(50):  # the store prepares files in a thread of its own, which may have met the full disk just now
        if not delayed.levels.progress()[0].pending:
            break
        clock.advance(seconds=RETRY_SECONDS)
        delayed.fire()
        time.sleep(0.01)
    assert delayed.bodies() == [bytes([i]) * 3000 for i in range(20)]
    delayed.stop()


def test_a_damaged_message_does_not_hold_up_its_level(tmp_path: Path, clock: FakeClock) -> None:
    delayed = Delayed(tmp_path, clock)
    first = delayed.put(b"A" * 50, 1)
    delayed.put(b"good", 1)
    path = next((tmp_path / "commitlog").iterdir())
    with path.open("r+b") as file:
        file.seek(first.physical_offset + 100)
        file.write(b"B")
    clock.advance(seconds=1)
    delayed.fire()
    assert delayed.bodies() == [b"good"]
    assert delayed.levels.progress()[0].dropped == 1
    delayed.stop()


def test_an_unexpected_error_lets_a_level_rest(
    delayed: Delayed, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    delayed.put(b"x", 1)
    delayed.put(b"y", 2)
    clock.advance(seconds=5)
    queue: Any = delayed.store.queues.get(SCHEDULE, 0)
    monkeypatch.setattr(type(queue), "read", lambda *_: b"")
    assert delayed.fire() == 0
    monkeypatch.undo()
    assert delayed.fire() == 1  # the other level works
    clock.advance(seconds=REST_SECONDS)
    assert delayed.fire() == 1


@pytest.mark.requirement("C133")
async def test_delivery_begins_a_second_after_the_start_and_all_levels_go_on_by_themselves(
    delayed: Delayed, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, pause = list[int | None](), clock.sleep_until

    async def noted_pause(due_ms: int | None, at_most: float) -> None:
        looks.append(due_ms)
        await pause(due_ms, at_most)

    async def delivered(*counts: int) -> None:
        async with asyncio.timeout(60):
            while [each.delivered for each in delayed.levels.progress()] != list(counts):
                await asyncio.sleep(0.01)

    for level in (1, 2, 3):
        delayed.put(b"%d" % level, level)
    clock.set(clock.now_ms() + 5000)  # two are due, but no time has passed for the service
    monkeypatch.setattr(clock, "sleep_until", noted_pause)
    running = asyncio.create_task(delayed.levels.run())
    await until(lambda: len(looks) >= 3)  # it has looked, and went on waiting
    assert not [each for each in delayed.levels.progress() if each.delivered]
    clock.advance(seconds=FIRST_LOOK_SECONDS)
    await delivered(1, 1, 0)
    clock.advance(seconds=4)
    await delivered(1, 1, 1)
    running.cancel()
    await asyncio.wait((running,))


# ── what is remembered ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("C132")
def test_the_file_is_that_of_rocketmq(delayed: Delayed, clock: FakeClock) -> None:
    for level in (1, 1, 3):
        delayed.put(b"x", level)
    clock.advance(seconds=1)
    delayed.fire()
    delayed.levels.save()
    content = (delayed.root / "config" / "delayOffset.json").read_text().translate(str.maketrans("", "", "\n\t "))
    version = json.loads(content.split('"dataVersion":')[1].split(',"offsetTable"')[0])
    assert version["timestamp"] == clock.now_ms()
    assert content.endswith('"offsetTable":{1:2}}')


def test_the_file_never_says_more_than_the_disk_has(delayed: Delayed, clock: FakeClock) -> None:
    delayed.put(b"0", 1)
    delayed.store.flush()
    clock.advance(seconds=1)
    delayed.fire()
    delayed.levels.settle()
    assert delayed.offsets[1] == 0
    delayed.store.flush()
    delayed.levels.settle()
    assert delayed.offsets[1] == 1


def test_many_groups_between_two_flushes_take_no_memory_and_are_safe_after_the_second(
    delayed: Delayed, clock: FakeClock
) -> None:
    for i in range(200):
        delayed.put(b"%d" % i, 1)
        clock.advance(seconds=1)
        delayed.fire()
    delayed.levels.settle()
    assert delayed.offsets[1] == 0
    delayed.store.flush()
    delayed.levels.settle()
    assert delayed.offsets[1] == 200


@pytest.mark.requirement("C159")
def test_offsets_are_moved_to_where_the_queue_has_entries(tmp_path: Path, clock: FakeClock) -> None:
    delayed = Delayed(tmp_path, clock)
    delayed.put(b"lost in a crash of another disk", 1)
    delayed.offsets.advance({1: 7, 2: 9, 3: 0})
    delayed.stop()
    again = Delayed(tmp_path, clock)
    assert [each.next_offset for each in again.levels.progress()] == [1, 0, 0]
    again.put(b"new", 2)
    clock.advance(seconds=5)
    again.fire()
    assert again.bodies() == [b"new"]
    again.stop()


def test_what_expired_before_it_was_due_is_passed_over(delayed: Delayed, clock: FakeClock) -> None:
    for i in range(5):
        delayed.put(b"%d" % i, 1)
    queue: Any = delayed.store.queues.get(SCHEDULE, 0)
    queue.min_offset = 3
    clock.advance(seconds=1)
    delayed.fire()
    assert delayed.bodies() == [b"3", b"4"]


def test_messages_of_a_level_that_the_setting_no_longer_has_are_delivered(tmp_path: Path, clock: FakeClock) -> None:
    delayed = Delayed(tmp_path, clock)
    delayed.put(b"ten seconds", 3)
    delayed.stop()
    fewer = Delayed(tmp_path, clock, delays=(1000,))
    assert fewer.fire() == 0
    clock.advance(seconds=10)
    fewer.fire()
    assert fewer.bodies() == [b"ten seconds"]
    fewer.stop()


@pytest.mark.requirement("C132")
def test_a_clean_restart_goes_on_where_it_was(tmp_path: Path, clock: FakeClock) -> None:
    delayed = Delayed(tmp_path, clock)
    delayed.put(b"0", 1)
    clock.advance(ms=500)
    delayed.put(b"1", 1)
    clock.advance(ms=500)
    delayed.fire()
    delayed.stop()
    again = Delayed(tmp_path, clock)
    assert again.bodies() == [b"0"]
    clock.advance(ms=500)
    again.fire()
    assert again.bodies() == [b"0", b"1"]
    again.stop()


def test_a_file_that_cannot_be_written_is_written_later(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    delayed = Delayed(tmp_path, clock)
    delayed.put(b"0", 1)
    clock.advance(seconds=1)
    delayed.fire()

    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(ConfigFile, "save", fails)
    delayed.levels.save()
    assert delayed.offsets.dirty
    monkeypatch.undo()
    delayed.stop()
    assert not delayed.offsets.dirty


@pytest.mark.parametrize("seed", range(20))
def test_a_power_cut_loses_nothing_that_waited_on_disk(tmp_path: Path, clock: FakeClock, seed: int) -> None:
    random = Random(seed)
    (tmp_path / "before").mkdir()
    disk = FaultyDisk(tmp_path / "before")
    delayed = Delayed(tmp_path / "before", clock, disk=disk)
    sent = [b"%d" % i for i in range(12)]
    for body in sent:
        delayed.put(body, 1)
    delayed.store.flush()
    clock.advance(seconds=1)
    for _ in range(random.randint(0, 3)):
        delayed.fire()
        if random.random() < 0.3:
            delayed.store.flush()
        delayed.levels.settle()
        delayed.offsets.save()  # whatever it says, the log must have
        delayed.put(b"maybe lost", 1)
        clock.advance(seconds=1)
    disk.leave_after_power_cut(tmp_path / "after", random)
    delayed.stop()
    again = Delayed(tmp_path / "after", clock)
    again.fire()
    assert set(again.bodies()) >= set(sent)
    again.stop()


# ── a store of Apache RocketMQ ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("C132")
@pytest.mark.parametrize("version", ["5.4.0", "4.9.7"])
def test_what_waits_in_a_store_of_apache_rocketmq_is_delivered_and_nothing_else(
    tmp_path: Path, clock: FakeClock, version: str
) -> None:
    golden = GoldenStore(version, "clean")
    messages = [line for line in golden.messages() if line["kind"] == "message"]
    waiting = [line for line in messages if line["topic"] == SCHEDULE]
    progress = DELAY_OFFSETS.decode((golden.path / "config" / "delayOffset.json").read_bytes()).offsets
    left = [line for line in waiting if line["queueOffset"] >= progress.get(line["queueId"] + 1, 0)]
    assert left
    root = golden.extract(tmp_path)
    clock.set(max(line["storeTimestamp"] for line in messages))
    store = MessageStore(root, replace(golden.config_of_broker(), dispatch_thread=False), clock=clock)
    store.open()
    encode = partial(DELAY_OFFSETS.encode, dialect=Dialect.V5_4)
    path = str(root / "config" / "delayOffset.json")
    offsets = DelayOffsetTable(ConfigFile(Disk(), path, DELAY_OFFSETS.decode, encode), clock)
    levels = DelayLevels(store, offsets, clock, parse_delay_levels(DEFAULT_DELAY_LEVELS))
    levels.load()
    ends = store.commit_log.written_offset
    while levels.fire_due(clock.now_ms()):
        pass
    clock.advance(hours=2)
    while levels.fire_due(clock.now_ms()):
        pass
    dispatch(store)
    delivered = []
    while ends < store.commit_log.written_offset:
        view = store.by_physical_offset(ends)
        assert view is not None
        record = decode_record(view)
        delivered.append((record.topic, record.queue_id, record.properties["UNIQ_KEY"], record.reconsume_times))
        ends += record.record_size
    expected = [
        (line["properties"]["REAL_TOPIC"], int(line["properties"]["REAL_QID"]), line["uniqKey"], line["reconsumeTimes"])
        for line in left
    ]
    assert sorted(delivered) == sorted(expected)
    levels.save()
    store.close()
    saved = DELAY_OFFSETS.decode(Path(path).read_bytes()).offsets
    assert all(saved[line["queueId"] + 1] > line["queueOffset"] for line in waiting)


# ── against a model ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Sent:
    """What the model knows of a message."""

    level: int
    due_ms: int
    queue_offset: int
    repeats: int = 0  # how often it may come again, because of kills


class AgainstAModel(RuleBasedStateMachine):
    """Random puts, waits, flushes, saves, clean restarts and kills: never early, never lost, never twice in vain."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = FakeClock()
        self.kills = 0
        self.sent: dict[bytes, Sent] = {}
        self.delayed = Delayed(self.folder / "0", self.clock)

    @rule(levels=st.lists(st.integers(1, 4), min_size=1, max_size=8))
    def put(self, levels: list[int]) -> None:
        for level in levels:
            body = b"%d" % len(self.sent)
            result = self.delayed.put(body, level)
            assert result.ok
            actual = min(level, 3)
            self.sent[body] = Sent(actual, self.clock.now_ms() + DELAYS[actual - 1], result.queue_offset)

    @rule(ms=st.integers(0, 4000))
    def wait(self, ms: int) -> None:
        self.clock.advance(ms=ms)

    @rule()
    def fire_once(self) -> None:
        self.delayed.levels.fire_due(self.clock.now_ms())
        dispatch(self.delayed.store)

    @rule()
    def fire(self) -> None:
        self.delayed.fire()
        counts = Counter(self.delayed.bodies())
        for body, sent in self.sent.items():
            assert (counts[body] > 0) == (sent.due_ms <= self.clock.now_ms()), f"{body!r} {sent} {counts[body]}"

    @rule()
    def flush(self) -> None:
        self.delayed.store.flush()

    @rule()
    def save(self) -> None:
        self.delayed.levels.settle()
        if self.delayed.offsets.dirty:
            self.delayed.offsets.save()

    @rule()
    def restart(self) -> None:
        self.delayed.stop()
        self.delayed = Delayed(self.delayed.root, self.clock)

    @rule()
    def kill(self) -> None:
        """What the page cache has survives, and the last file that was saved."""
        self.kills += 1
        delivered = set(self.delayed.bodies())
        saved = self.folder / str(self.kills)
        shutil.copytree(self.delayed.root, saved, ignore=shutil.ignore_patterns("*.tmp"))
        self.delayed.store.close()
        path = saved / "config" / "delayOffset.json"
        known = DELAY_OFFSETS.decode(path.read_bytes()).offsets if path.exists() else {}
        for body, sent in self.sent.items():
            sent.repeats += body in delivered and sent.queue_offset >= known.get(sent.level, 0)
        self.delayed = Delayed(saved, self.clock)

    @invariant()
    def nothing_early_and_nothing_too_often(self) -> None:
        records = self.delayed.delivered()
        for record in records:
            assert record.store_timestamp >= self.sent[record.body].due_ms
        for body, count in Counter(record.body for record in records).items():
            assert count <= 1 + self.sent[body].repeats
        for level in (1, 2, 3):
            firsts = dict.fromkeys(int(each.body) for each in records if self.sent[each.body].level == level)
            assert list(firsts) == sorted(firsts)

    def teardown(self) -> None:
        self.delayed.stop()
        shutil.rmtree(self.folder)


TestAgainstAModel = pytest.mark.requirement("A049")(AgainstAModel.TestCase)
TestAgainstAModel.settings = settings(
    max_examples=10, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
