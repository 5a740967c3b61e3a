"""Damage that was once answered wrongly: with a lost queue, deleted log files, another queue's messages, no start."""

import logging
from pathlib import Path

import pytest

from skyrocket.errors import CorruptFile
from skyrocket.format.record import QUEUE_OFFSET_AT, field_offset
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.message_store import MessageStore
from tests.faults.damaged_store import Damaged, Reading, golden_copy
from tests.faults.harness import (
    BATCH_TOPIC,
    Driver,
    Ledger,
    Put,
    abandon,
    check_refusal,
    new_clock,
    open_store,
    small_config,
)
from tests.golden_store import GoldenStore

CLEAN = GoldenStore("5.4.0", "clean")
KILLED = GoldenStore("5.4.0", "killed")
BUSY = ("TopicBusy", 1)  # 375 records in 5.4.0/clean


def record_of(golden: GoldenStore, topic: str, queue_id: int, number: int) -> int:
    """Where a record stands in the log."""
    for line in golden.messages():
        if (line.get("topic"), line.get("queueId"), line.get("queueOffset")) == (topic, queue_id, number):
            return int(line["physicalOffset"])
    raise AssertionError("no such record")


def expected_of(golden: GoldenStore) -> Reading:
    reading = Reading()
    for line in golden.lines("queues"):
        entries = {line["min"] + number: entry[0] for number, entry in enumerate(line["entries"])}
        if line["entries"] and len(line["entries"][0]) > 3:
            entries = {entry[3]: entry[0] for entry in line["entries"]}
        if entries:
            reading.queues[line["topic"], line["queueId"]] = entries
    return reading


# -- a flipped queue offset ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bit", [4, 12, 20, 30, 62])
def test_one_flipped_queue_offset_moves_no_queue_of_a_closed_rocketmq_store(directory: Path, bit: int) -> None:
    damaged = golden_copy(CLEAN, directory / "store")
    damaged.flip_log(818_229 + QUEUE_OFFSET_AT + 7 - bit // 8, 1 << bit % 8)
    files = damaged.files("commitlog").keys()
    assert damaged.read().queues == expected_of(CLEAN).queues
    assert damaged.files("commitlog").keys() == files


@pytest.mark.parametrize("bit", [4, 12, 20, 30, 62, 63])
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("which", [0, 1, 20, -2, -1])
def test_one_flipped_queue_offset_moves_no_queue_of_ours(directory: Path, bit: int, clean: bool, which: int) -> None:
    damaged, puts = our_store(directory / "store", clean=clean)
    own = [put for put in puts.puts if (put.topic, put.queue_id) == ("orders", 0)]
    damaged.flip_log(own[which].physical_offset + QUEUE_OFFSET_AT + 7 - bit // 8, 1 << bit % 8)
    reading = damaged.read()
    assert reading.queues["orders", 0] == {put.queue_offset: put.physical_offset for put in own}
    assert not reading.refused


@pytest.mark.parametrize("bit", [1, 4, 20, 62])
def test_one_flipped_queue_offset_is_passed_when_all_queues_are_built_anew(directory: Path, bit: int) -> None:
    damaged, puts = our_store(directory / "store", clean=True)
    own = [put for put in puts.puts if (put.topic, put.queue_id) == ("orders", 1)]
    damaged.flip_log(own[7].physical_offset + QUEUE_OFFSET_AT + 7 - bit // 8, 1 << bit % 8)
    damaged.remove("consumequeue")
    assert damaged.read().queues["orders", 1] == {put.queue_offset: put.physical_offset for put in own}


def our_store(root: Path, *, clean: bool, file_size: int = 8192) -> tuple[Damaged, Ledger]:
    config = small_config(commit_log_file_size=file_size)
    clock, ledger = new_clock(), Ledger()
    driver = Driver(open_store(root, config, clock), ledger, clock)
    for number in range(150):
        clock.advance(seconds=1)
        driver.put("orders", number % 2, 60)
        if number % 3 == 0:
            driver.put("other", 0, 60)
        if number == 100:
            driver.flush()
            driver.store.dispatch()
            driver.store.flush_queues()
    driver.store.dispatch()
    if clean:
        driver.close()
    else:
        driver.flush()
        abandon(driver.store)
    return Damaged(root, config), ledger


# -- damage in the middle of the log ---------------------------------------------------------------------------


def body_of(golden: GoldenStore, physical_offset: int) -> int:
    """A byte in the middle of a record's body."""
    line = next(line for line in golden.messages() if line["physicalOffset"] == physical_offset)
    assert line["storedBodyLength"] > 8
    head = 88 if ":" not in line["bornHost"].rpartition(":")[0] else 112
    return int(physical_offset + head + line["storedBodyLength"] // 2)


@pytest.mark.parametrize(
    ("golden", "physical_offset"),
    [
        (GoldenStore("5.4.0", "killed-recovered"), 1_110_404),
        (GoldenStore("4.9.7", "killed-recovered"), None),
        (GoldenStore("5.4.0", "clean"), None),
    ],
    ids=str,
)
def test_a_closed_rocketmq_store_with_one_bad_body_keeps_every_record(
    directory: Path, golden: GoldenStore, physical_offset: int | None
) -> None:
    damaged = golden_copy(golden, directory / "store")
    lines = [line for line in golden.messages() if line["kind"] == "message" and line["storedBodyLength"] > 8]
    place = physical_offset or lines[len(lines) // 3]["physicalOffset"]
    damaged.flip_log(body_of(golden, place), 1)
    before = damaged.files("commitlog")
    assert damaged.read().queues == expected_of(golden).queues
    assert damaged.files("commitlog") == before


def test_a_closed_rocketmq_store_is_not_cut_in_its_newest_file(directory: Path) -> None:
    golden = GoldenStore("5.4.0", "timer-roll")  # one file: every start walks through it
    damaged = golden_copy(golden, directory / "store")
    lines = [line for line in golden.messages() if line["kind"] == "message" and line["storedBodyLength"] > 8]
    place = lines[len(lines) // 3]["physicalOffset"]
    damaged.flip_log(body_of(golden, place), 1)
    before = damaged.files("commitlog")
    with pytest.raises(CorruptFile, match=f"physical offset {place} is damaged") as refusal:
        damaged.read()
    check_refusal(refusal.value, damaged.root)
    assert damaged.files("commitlog") == before


def test_what_is_cut_off_the_log_is_kept_aside(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    damaged = golden_copy(KILLED, directory / "store")
    last = [line for line in KILLED.messages() if line["kind"] == "message"][-40:]
    place = int(last[0]["physicalOffset"])
    damaged.flip_log(place + 4, 0xFF)  # its magic: records that nobody knows to have been flushed follow
    size = damaged.config.commit_log_file_size
    start = place - place % size
    before = damaged.files("commitlog")[f"commitlog/{start:020d}"]
    with caplog.at_level(logging.WARNING), damaged.opened() as store:
        assert store.commit_log.written_offset == place
    cut = directory / "store" / "skyrocket.cut" / f"{place:020d}"
    assert (cut / f"{place:020d}").read_bytes() == before[place - start :].rstrip(b"\0")
    assert str(cut) in caplog.text


def test_whole_log_files_that_are_cut_off_are_kept_aside(directory: Path) -> None:
    damaged = golden_copy(KILLED, directory / "store", truncate_damaged_log=True)
    size = damaged.config.commit_log_file_size
    before = {name: data for name, data in damaged.files("commitlog").items() if any(data)}
    place = next(line["physicalOffset"] for line in KILLED.messages() if line["physicalOffset"] > 3 * size + 1000)
    damaged.flip_log(place, 0x40)
    with damaged.opened() as store:
        assert store.commit_log.written_offset == place
    cut = f"skyrocket.cut/{place:020d}/"
    after = damaged.files()
    for name, data in before.items():
        start = int(name.rpartition("/")[2])
        if start > place:
            assert after[cut + f"{start:020d}"] == data


# -- nothing says how far the log had been flushed -------------------------------------------------------------


def without_knowledge(damaged: Damaged, how: str) -> None:
    """Take away what the checkpoint says, as RocketMQ does that writes on in a store of ours: the seal stays."""
    checkpoint = damaged.root / "checkpoint"
    if how == "none":
        checkpoint.unlink(missing_ok=True)
        return
    page = bytearray(checkpoint.read_bytes())
    for at in (0, 8, 16):
        later = int.from_bytes(page[at : at + 8], "big") + 1
        page[at : at + 8] = later.to_bytes(8, "big")
    checkpoint.write_bytes(page)


def harm_body(damaged: Damaged, puts: Ledger, number: int) -> Put:
    """Flip a bit in the body of one message."""
    put = puts.puts[number]
    damaged.flip_log(put.physical_offset + 88 + len(put.body) // 2, 1)
    return put


@pytest.mark.parametrize("how", ["none", "stale"])
def test_old_damage_does_not_end_the_log_of_a_killed_store_without_a_checkpoint(
    directory: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    damaged, puts = our_store(directory / "store", clean=False)
    without_knowledge(damaged, how)
    harmed = harm_body(damaged, puts, 30)  # a minute and a half before the end, in an old file
    with caplog.at_level(logging.ERROR):
        reading = damaged.read()
    others = {put.physical_offset for put in puts.puts if put is not harmed}
    assert others <= reading.records
    assert f"record={harmed.physical_offset} " in caplog.text
    assert not (damaged.root / "skyrocket.cut").exists()


@pytest.mark.parametrize("how", ["none", "stale"])
def test_a_minute_of_records_behind_damage_in_the_newest_file_is_not_cut_off(directory: Path, how: str) -> None:
    damaged, puts = our_store(directory / "store", clean=False, file_size=1 << 18)
    without_knowledge(damaged, how)
    harmed = harm_body(damaged, puts, 30)
    before = damaged.files("commitlog")
    with pytest.raises(CorruptFile, match=f"physical offset {harmed.physical_offset} is damaged") as refusal:
        damaged.read()
    check_refusal(refusal.value, damaged.root)
    assert damaged.files("commitlog") == before


@pytest.mark.parametrize("how", ["none", "stale"])
def test_the_torn_end_of_a_killed_store_without_a_checkpoint_is_cut_off(directory: Path, how: str) -> None:
    damaged, puts = our_store(directory / "store", clean=False)
    without_knowledge(damaged, how)
    harmed = harm_body(damaged, puts, -30)  # seconds before the end: nobody knows that the disk had what follows
    reading = damaged.read()
    assert reading.records == {put.physical_offset for put in puts.puts[:-30]}
    assert (damaged.root / "skyrocket.cut" / f"{harmed.physical_offset:020d}").exists()


def test_one_wrong_store_time_makes_no_torn_end_an_old_one(directory: Path) -> None:
    damaged, puts = our_store(directory / "store", clean=False)
    without_knowledge(damaged, "none")
    harmed = harm_body(damaged, puts, -30)
    damaged.flip_log(puts.puts[-5].physical_offset + field_offset("store_timestamp") + 2, 1)  # thousands of years later
    assert damaged.read().records == {put.physical_offset for put in puts.puts[:-30]}
    assert (damaged.root / "skyrocket.cut" / f"{harmed.physical_offset:020d}").exists()


def test_what_a_clean_stop_left_is_not_cut_off_after_another_program_wrote_on_and_was_killed(directory: Path) -> None:
    damaged, puts = our_store(directory / "store", clean=True, file_size=1 << 18)
    without_knowledge(damaged, "stale")
    (damaged.root / "abort").touch()
    harmed = harm_body(damaged, puts, -30)
    with pytest.raises(CorruptFile, match=f"physical offset {harmed.physical_offset} is damaged") as refusal:
        damaged.read()
    check_refusal(refusal.value, damaged.root)


# -- one entry that is wrong -----------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", ["orders", BATCH_TOPIC])
def test_a_last_entry_that_was_harmed_while_the_store_was_open_is_found_at_the_next_start(
    directory: Path, topic: str
) -> None:
    """The store is sealed with the damage in it: a start that believes the seal must not drop the entry."""
    config = small_config()
    clock, ledger = new_clock(), Ledger()
    driver = Driver(open_store(directory / "store", config, clock), ledger, clock)
    for _ in range(7):
        driver.put("orders", 0)
        driver.put(BATCH_TOPIC, 0, messages=3)
    driver.store.dispatch()
    driver.store.flush_queues()
    queue = driver.store.queues.by_key[topic, 0]
    size = queue.entries.entry_size
    queue.entries.overwrite(queue.entries.end - size + 1, b"\1")  # its record: far behind the end of the log
    driver.close()
    own = {put.queue_offset: put.physical_offset for put in ledger.puts if put.topic == topic}
    assert Damaged(directory / "store", config).read().queues[topic, 0] == own


@pytest.mark.parametrize(("position", "mask"), [(7, 0x01), (7, 0x80), (6, 0x40), (3, 0x01), (8, 0x01), (11, 0x20)])
@pytest.mark.parametrize(("golden", "queue_id"), [(CLEAN, 16), (GoldenStore("5.4.0", "lmq"), 17)], ids=str)
def test_the_only_entry_of_a_queue_is_mended_from_the_log(
    directory: Path, golden: GoldenStore, queue_id: int, position: int, mask: int
) -> None:
    key = ("SCHEDULE_TOPIC_XXXX", queue_id)
    whole = expected_of(golden).queues[key]
    assert len(whole) == 1
    damaged = golden_copy(golden, directory / "store")
    damaged.flip(f"consumequeue/{key[0]}/{queue_id}/{0:020d}", position, mask)
    assert damaged.read().queues[key] == whole


# -- queues that are not the log's -----------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["", "/00000000000000000000"])
def test_swapped_queues_never_answer_with_messages_of_the_other(directory: Path, file: str) -> None:
    damaged, puts = our_store(directory / "store", clean=True)
    damaged.swap(f"consumequeue/orders/0{file}", f"consumequeue/orders/1{file}")
    reading = damaged.read()
    for queue_id in (0, 1):
        own = {
            put.queue_offset: put.physical_offset
            for put in puts.puts
            if (put.topic, put.queue_id) == ("orders", queue_id)
        }
        found = reading.queues["orders", queue_id]
        assert found.items() <= own.items()
        assert found == own or ("orders", queue_id) in reading.refused


@pytest.mark.parametrize("other", ["TopicTiny/1", "TopicTiny/0", "%LMQ%beta/0"])
def test_the_file_of_a_light_queue_is_not_taken_for_that_of_a_queue_with_the_same_records(
    directory: Path, other: str
) -> None:
    golden = GoldenStore("5.4.0", "lmq")
    damaged = golden_copy(golden, directory / "store")
    file = "00000000000000000000"
    damaged.swap(f"consumequeue/%LMQ%alpha/0/{file}", f"consumequeue/{other}/{file}")
    with damaged.opened() as store:
        for key, places in expected_of(golden).queues.items():
            entries = [entry_of(store, key, number) for number in places]
            assert entries == list(places.values()), key


def entry_of(store: MessageStore, key: tuple[str, int], number: int) -> int | None:
    """Where the record of an entry lies."""
    queue = store.queues.by_key[key]
    assert isinstance(queue, ConsumeQueue)
    entry = queue.entry(number)
    return entry and entry.physical_offset


@pytest.mark.parametrize("how", ["swapped", "deleted"])
@pytest.mark.parametrize("key", [("TopicBusy", 1), ("TopicLoad", 0)])
def test_queues_of_a_killed_rocketmq_store_that_do_not_fit_are_built_anew(
    directory: Path, how: str, key: tuple[str, int]
) -> None:
    damaged = golden_copy(KILLED, directory / "store")
    names = sorted(path.name for path in (damaged.root / "consumequeue").iterdir())
    topic = key[0] if key[0] in names else names[0]
    if how == "swapped":
        damaged.swap(f"consumequeue/{topic}", f"consumequeue/{names[-1]}")
    else:
        damaged.remove(f"consumequeue/{topic}")
    assert damaged.read().queues == expected_of(KILLED).queues


def test_light_queues_stay_when_multi_dispatch_is_off(directory: Path) -> None:
    golden = GoldenStore("5.4.0", "lmq")
    damaged = golden_copy(golden, directory / "store", multi_dispatch=False)
    light = {key for key in expected_of(golden).queues if key[0].startswith("%LMQ%")}
    assert light
    for _ in range(2):
        with damaged.opened() as store:
            for key in light:
                assert store.max_offset(*key) == len(expected_of(golden).queues[key])
                found = store.get(*key, 0, 1000)
                assert found.count == min(32, len(expected_of(golden).queues[key]))
