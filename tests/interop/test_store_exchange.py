"""Our store and Apache RocketMQ's on the same files, in every order: nothing acknowledged by either is lost."""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skyrocket.errors import CorruptFile, StoreLocked
from skyrocket.format.java_hash import java_hash
from skyrocket.testing.clock import FakeClock
from tests.interop.apache import Apache
from tests.interop.our_store import expected_line, found_lines, opened, put_all, query_offsets, read_everything
from tests.interop.rocketmq_store import (
    Contents,
    Draft,
    KeyQuery,
    Line,
    QueueKey,
    append,
    append_and_halt,
    holding,
    read,
)
from tests.interop.samples import DELAYED_TOPIC, SMALL_FILES, queries_for, samples, samples_for_rocketmq
from tests.interop.writer import WRITER_MESSAGES
from tests.waiting import wait_until

pytestmark = pytest.mark.interop

WRITER_TIMEOUT_S = 60


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


# ---- clean hand-over


@pytest.mark.requirement("A001", "A008", "A009", "A019", "D005", "D007")
def test_a_store_that_we_closed_is_read_extended_and_returned_by_rocketmq(path: Path, apache: Apache) -> None:
    our_drafts, their_drafts = samples(apache.version, seed=1), samples_for_rocketmq(apache.version, seed=2)
    with opened(path, SMALL_FILES) as store:
        ours = put_all(store, our_drafts)
    assert not (path / "abort").exists()

    queries = queries_for([*our_drafts, *their_drafts], apache.version)
    contents = append(apache, path, SMALL_FILES, their_drafts, queries=queries)

    everything = ours + appended_lines(their_drafts, contents)
    assert contents.recovered_end == everything[len(ours)]["physicalOffset"]
    assert found_lines(contents.messages) == everything
    assert contents.query_results == expected_results(queries, everything)
    with opened(path, SMALL_FILES) as store:
        assert found_lines(read_everything(store)) == everything
        assert [query_offsets(store, query) for query in queries] == contents.query_results
        everything += put_all(store, samples(apache.version, count=20, seed=3))
    assert found_lines(read(apache, path, SMALL_FILES).messages) == everything


@pytest.mark.requirement("A017", "B025")
def test_queues_and_index_built_by_us_equal_those_that_rocketmq_builds_from_the_log(path: Path, apache: Apache) -> None:
    drafts = samples(apache.version)
    with opened(path, SMALL_FILES) as store:
        expected = put_all(store, drafts)
    bare = bare_copy(path, path.with_name("bare"))

    queries = queries_for(drafts, apache.version)
    built_by_us = read(apache, path, SMALL_FILES, queries=queries)
    built_by_rocketmq = read(apache, bare, SMALL_FILES, queries=queries)

    assert found_lines(built_by_rocketmq.messages) == expected
    assert queues_of(apache, built_by_us) == queues_of(apache, built_by_rocketmq)
    assert built_by_us.messages == built_by_rocketmq.messages
    assert built_by_us.query_results == built_by_rocketmq.query_results


@pytest.mark.parametrize("steps_ms", [(1,), (0, 0, 0, 5), (0, 1, 7), (3, -2)], ids=str)
def test_we_find_the_same_offset_for_a_time_as_rocketmq(
    path: Path, apache_of_version: Callable[[str], Apache], steps_ms: tuple[int, ...]
) -> None:
    apache = apache_of_version("5.4.0")  # 4.9 answers with the nearest message instead
    clock = FakeClock(time.time_ns() // 1_000_000 - 60_000)
    with opened(path, SMALL_FILES, clock=clock) as store:
        stored = []
        for draft, step_ms in zip(samples(apache.version, count=100), itertools.cycle(steps_ms), strict=False):
            stored += put_all(store, [draft])
            clock.set(clock.now_ms() + step_ms)
        moments = sorted({line["storeTimestamp"] + shift for line in stored for shift in (-1, 0, 1)})
        queues = sorted({(line["topic"], line["queueId"]) for line in stored})
        # One dispatch does nothing while the store's own thread has the queues.
        wait_until(lambda: store.dispatch() == 0 and not store.dispatch_lag_bytes)
        ours = [[[time_ms, store.offset_by_time(*queue, time_ms)] for time_ms in moments] for queue in queues]

    times = [{"topic": topic, "queueId": queue_id, "timestamps": moments} for topic, queue_id in queues]
    contents = read(apache, path, SMALL_FILES, times=times)

    assert [line["results"] for line in contents.of("times")] == ours


# ---- unclean hand-over


@pytest.mark.requirement("A029", "C156", "C158")
def test_a_store_whose_writer_was_killed_opens_in_rocketmq_with_all_that_was_acknowledged(
    path: Path, apache: Apache
) -> None:
    acknowledged = write_and_kill(path, apache.version, seed=1, kill_after=400)
    assert (path / "abort").exists()
    untouched = copy(path, path.with_name("untouched"))

    contents = read(apache, path, SMALL_FILES)

    found = found_lines(contents.messages)
    assert found[: len(acknowledged)] == acknowledged
    assert_queues_have_no_gaps(contents)
    if is_copied_in_part(found, apache.version, seed=1):
        found.pop()
    for survivor in (path, untouched):
        with opened(survivor, SMALL_FILES) as store:
            assert found_lines(read_everything(store)) == found


@pytest.mark.requirement("C158")
def test_what_rocketmq_wrote_behind_a_record_that_we_had_copied_in_part_stays(
    path: Path, apache_of_version: Callable[[str], Apache]
) -> None:
    """A whole body is enough for RocketMQ: it takes the last record of a killed writer without the end of its text."""
    apache = apache_of_version("4.9.7")
    with opened(path, SMALL_FILES) as store:
        expected = put_all(store, [Draft("Cut", 0, b"x" * 200, {"UNIQ_KEY": f"{number:032X}"}) for number in range(9)])
        end = store.commit_log.written_offset
    (path / "abort").touch()
    (path / "checkpoint").unlink()
    with (path / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(end - 10)
        file.write(bytes(10))
    drafts = samples_for_rocketmq(apache.version, count=20)

    expected += appended_lines(drafts, append_and_halt(apache, path, SMALL_FILES, drafts))

    remove_unsized_files(path)
    expected[8]["properties"] = {"UNIQ_KEY": f"{8:032X}"[:-9] + "\0" * 10}  # nine digits and the end mark
    with opened(path, SMALL_FILES) as store:
        assert found_lines(read_everything(store)) == expected


@pytest.mark.slow
def test_a_writer_killed_while_it_makes_a_file_leaves_none_that_rocketmq_refuses(path: Path) -> None:
    """4.9 does not start on a file of another length than the configured one, not even on an empty newest file."""
    for attempt in range(12):
        store = path / str(attempt)
        kill_when_there_is(store / "commitlog" / f"{SMALL_FILES.commit_log_file_size * (attempt % 4):020d}", store)
        sizes = {file.stat().st_size for file in store.glob("commitlog/*")}
        assert sizes == {SMALL_FILES.commit_log_file_size}
        sizes = {file.stat().st_size for file in store.glob("consumequeue/*/*/*")}
        assert sizes <= {SMALL_FILES.consume_queue_file_size}


@pytest.mark.requirement("C156", "C158")
def test_a_store_that_rocketmq_left_by_a_crash_opens_in_ours_with_all_that_was_acknowledged(
    path: Path, apache: Apache
) -> None:
    drafts = samples_for_rocketmq(apache.version)
    expected = appended_lines(drafts, append_and_halt(apache, path, SMALL_FILES, drafts))
    assert (path / "abort").exists()

    with opened(path, SMALL_FILES) as store:
        assert found_lines(read_everything(store)) == expected
        queries = queries_for(drafts, apache.version)
        found = [unique(query_offsets(store, query)) for query in queries]
        assert found == [unique(offsets) for offsets in expected_results(queries, expected)]
        expected += put_all(store, samples(apache.version, count=20, seed=2))

    assert found_lines(read(apache, path, SMALL_FILES).messages) == expected


def test_files_that_rocketmq_had_not_sized_yet_do_not_stop_us(path: Path, apache: Apache) -> None:
    drafts = [Draft("Half", 0, bytes(300), {"UNIQ_KEY": f"{number:032X}"}) for number in range(60)]
    expected = appended_lines(drafts, append_and_halt(apache, path, SMALL_FILES, drafts))
    remove_unsized_files(path)
    (path / "commitlog" / f"{SMALL_FILES.commit_log_file_size:020d}").write_bytes(b"")
    (path / "consumequeue" / "Half" / "0" / f"{2 * SMALL_FILES.consume_queue_file_size:020d}").write_bytes(b"")
    (path / "consumequeue" / "Unborn" / "0").mkdir(parents=True)
    (path / "consumequeue" / "Unborn" / "0" / f"{0:020d}").write_bytes(b"")

    with opened(path, SMALL_FILES) as store:
        assert found_lines(read_everything(store)) == expected

    assert found_lines(read(apache, path, SMALL_FILES).messages) == expected


@pytest.mark.requirement("A017", "B025")
def test_commit_log_config_and_abort_of_rocketmq_are_enough_for_us(path: Path, apache: Apache) -> None:
    drafts = samples_for_rocketmq(apache.version)
    appended = append_and_halt(apache, path, SMALL_FILES, drafts)
    bare = bare_copy(path, path.with_name("bare"))

    with opened(bare, SMALL_FILES) as store:
        assert found_lines(read_everything(store)) == appended_lines(drafts, appended)

    remove_unsized_files(path)
    built_by_us, built_by_rocketmq = read(apache, bare, SMALL_FILES), read(apache, path, SMALL_FILES)
    assert built_by_us.queues == built_by_rocketmq.queues
    assert built_by_us.messages == built_by_rocketmq.messages


@pytest.mark.requirement("C158")
@pytest.mark.parametrize(
    "late",
    [
        pytest.param(Draft("Cut", 0, b"short", {"UNIQ_KEY": "F" * 32}), id="then-a-short-record"),
        pytest.param(
            Draft("Other", 0, bytes(20_000), {"UNIQ_KEY": "F" * 32}),
            id="then-one-over-all-of-them",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_records_that_rocketmq_cut_off_do_not_come_back_and_do_not_block_us(
    path: Path, apache: Apache, late: Draft
) -> None:
    """RocketMQ truncates by moving its position: old records and queue entries remain behind the new end."""
    with opened(path, SMALL_FILES) as store:
        ours = put_all(store, [Draft("Cut", 0, b"x" * 200, {"UNIQ_KEY": f"{number:032X}"}) for number in range(100)])
    damaged = ours[60]["physicalOffset"]
    flip_byte(path / "commitlog" / f"{0:020d}", damaged + 100)
    (path / "abort").touch()
    (path / "checkpoint").unlink()

    contents = append(apache, path, SMALL_FILES, [late])

    expected = ours[:60] + appended_lines([late], contents)
    assert found_lines(contents.messages) == expected
    with opened(path, SMALL_FILES) as store:
        assert found_lines(read_everything(store)) == expected


@pytest.mark.slow
def test_damage_in_what_we_had_closed_does_not_end_the_log_when_rocketmq_wrote_on_and_was_killed(
    path: Path, apache: Apache
) -> None:
    """RocketMQ's times may stand over our seal then: nothing says how far the log had been flushed."""
    with opened(path, SMALL_FILES) as store:
        ours = put_all(store, [Draft("Kept", 0, b"x" * 200, {"UNIQ_KEY": f"{number:032X}"}) for number in range(100)])
    append_and_halt(apache, path, SMALL_FILES, samples_for_rocketmq(apache.version, count=20))
    remove_unsized_files(path)
    damaged = ours[60]["physicalOffset"]
    flip_byte(path / "commitlog" / f"{0:020d}", damaged + 100)
    before = {file.name: file.read_bytes() for file in (path / "commitlog").iterdir()}

    with pytest.raises(CorruptFile, match=f"physical offset {damaged} is damaged"), opened(path, SMALL_FILES):
        pass

    assert {file.name: file.read_bytes() for file in (path / "commitlog").iterdir()} == before


# ---- one owner at a time


@pytest.mark.requirement("A024")
def test_rocketmq_does_not_start_on_a_store_that_we_hold(path: Path, apache: Apache) -> None:
    with (
        opened(path, SMALL_FILES),
        pytest.raises(AssertionError, match="Lock failed"),
    ):
        append(apache, path, SMALL_FILES, [])


@pytest.mark.requirement("A024")
def test_we_do_not_open_a_store_that_rocketmq_holds(path: Path, apache: Apache) -> None:
    with holding(apache, path, SMALL_FILES), pytest.raises(StoreLocked), opened(path, SMALL_FILES):
        pass


# ---- the long mode


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("C158")
@pytest.mark.parametrize("seed", range(3))
def test_a_store_that_goes_from_hand_to_hand_keeps_everything(path: Path, apache: Apache, seed: int) -> None:
    """Random turns of: we write and close, we are killed, RocketMQ writes and closes, RocketMQ halts."""
    chance = random.Random(seed)
    expected: list[Line] = []
    turns: list[str] = []
    in_part = False  # the last record is one that only RocketMQ takes
    for turn in range(12):
        turns.append(chance.choice(("ours", "ours killed", "theirs", "theirs halted")))
        drafts = samples_for_rocketmq(apache.version, count=chance.randrange(40, 160), seed=100 + turn)
        if turns[-1].startswith("ours") and in_part:
            expected.pop()
        in_part = False
        if turns[-1] == "ours":
            with opened(path, SMALL_FILES) as store:
                assert found_lines(read_everything(store)) == expected, turns
                expected += put_all(store, drafts)
        elif turns[-1] == "ours killed":
            acknowledged = write_and_kill(path, apache.version, seed=100 + turn, kill_after=chance.randrange(1, 300))
            found = found_lines(read(apache, path, SMALL_FILES).messages)
            assert found[: len(expected) + len(acknowledged)] == expected + acknowledged, turns
            in_part = is_copied_in_part(found[len(expected) :], apache.version, seed=100 + turn)
            expected = found
        elif turns[-1] == "theirs":
            contents = append(apache, path, SMALL_FILES, drafts)
            expected += appended_lines(drafts, contents)
            assert found_lines(contents.messages) == expected, turns
        else:
            expected += appended_lines(drafts, append_and_halt(apache, path, SMALL_FILES, drafts))
            remove_unsized_files(path)
    assert found_lines(read(apache, path, SMALL_FILES).messages) == expected, turns


# ---- helpers


def appended_lines(drafts: list[Draft], contents: Contents) -> list[Line]:
    """What must be found of the drafts that RocketMQ said it had appended."""
    assert len(contents.appended) == len(drafts)
    return [expected_line(draft, placement) for draft, placement in zip(drafts, contents.appended, strict=True)]


def expected_results(queries: list[KeyQuery], everything: list[Line]) -> list[list[int]]:
    """Ascending, as a store returns them: once per index entry with the same hash, the newest `max_count` of them."""
    entries: dict[tuple[str, str | None, int], list[int]] = {}
    for line in everything:
        for kind, key in indexed_keys(line["properties"]):
            entries.setdefault((line["topic"], kind, java_hash(key)), []).append(line["physicalOffset"])
    return [entries[query.topic, query.type, java_hash(query.key)][-query.max_count :] for query in queries]


def indexed_keys(properties: dict[str, str]) -> list[tuple[str | None, str]]:
    """The type of query that finds it, and the key."""
    keys = [properties["UNIQ_KEY"], *properties.get("KEYS", "").split()]
    tags = [properties["TAGS"]] if "TAGS" in properties else []
    return [(None, key) for key in keys] + [("T", tag) for tag in tags]


def unique(offsets: list[int]) -> list[int]:
    """Recovery indexes the record at the seam of two files once more, as RocketMQ's does."""
    return list(dict.fromkeys(offsets))


def queues_of(apache: Apache, contents: Contents) -> dict[QueueKey, Line]:
    """All queues; without the delayed messages where 4.9 rebuilt them.

    RocketMQ: 4.9 recovers before it knows its delay levels, and so loses the delivery times.
    """
    return {
        key: queue for key, queue in contents.queues.items() if apache.version != "4.9.7" or key[0] != DELAYED_TOPIC
    }


def write_and_kill(path: Path, version: str, *, seed: int, kill_after: int) -> list[Line]:
    """Let a process of ours write, kill it with SIGKILL; returns what it had acknowledged."""
    command = [sys.executable, "-m", "tests.interop.writer", str(path), version, str(seed)]
    placements: list[Line] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                placements.append(json.loads(line))
                if len(placements) == kill_after:
                    os.kill(process.pid, signal.SIGKILL)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL, "the writer ended by itself"
    drafts = samples_for_rocketmq(version, count=WRITER_MESSAGES, seed=seed)
    return [expected_line(drafts[placement["number"]], placement) for placement in placements]


def is_copied_in_part(written: list[Line], version: str, *, seed: int) -> bool:
    """Whether the last of a killed writer's records, as RocketMQ found it, lacks the end of its property text.

    The writer was killed while it copied the record, so nobody was told of it. Our recovery drops it while it is the
    last one; RocketMQ takes it, and what it then writes behind it makes it a part of the log.
    """
    drafts = samples_for_rocketmq(version, count=WRITER_MESSAGES, seed=seed)
    return bool(written) and expected_line(drafts[len(written) - 1], written[-1]) != written[-1]


def kill_when_there_is(file: Path, store: Path) -> None:
    """Let a process of ours write, kill it in the instant in which a file appears."""
    command = [sys.executable, "-m", "tests.interop.writer", str(store), "4.9.7", "1"]
    deadline = time.monotonic() + WRITER_TIMEOUT_S
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            while not file.exists():
                assert time.monotonic() < deadline
        finally:
            process.kill()


def assert_queues_have_no_gaps(contents: Contents) -> None:
    for (topic, queue_id), queue in contents.queues.items():
        here = [m["queueOffset"] for m in contents.messages if (m["topic"], m["queueId"]) == (topic, queue_id)]
        assert here == list(range(queue["min"], queue["max"]))


def copy(store: Path, target: Path) -> Path:
    shutil.copytree(store, target)
    return target


def bare_copy(store: Path, target: Path) -> Path:
    """Only the log, the configuration and the mark of an unclean stop."""
    for name in ("commitlog", "config"):
        if (store / name).exists():
            shutil.copytree(store / name, target / name)
    (target / "abort").touch()
    return target


def remove_unsized_files(store: Path) -> None:
    """RocketMQ: a halt may leave the newest file of a queue at length 0, and then 4.9 refuses its own store."""
    for file in (*store.glob("commitlog/*"), *store.glob("consumequeue/*/*/*")):
        if file.stat().st_size == 0:
            file.unlink()


def flip_byte(file: Path, position: int) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 0xFF
    file.write_bytes(content)
