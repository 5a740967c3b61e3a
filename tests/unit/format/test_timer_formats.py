"""Timer log, timer wheel and timer checkpoint: golden bytes, damage, and the rules of parking."""

import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.errors import DataError
from skyrocket.format import timer_log
from skyrocket.format.timer_checkpoint import (
    MOST_BEGUN,
    SIZE,
    WIRE_SIZE,
    TimerCheckpoint,
    decode_timer_checkpoint,
    encode_timer_checkpoint,
)
from skyrocket.format.timer_log import (
    BLANK_SIZE,
    MAGIC_DEFAULT,
    MAGIC_DELETE,
    MAGIC_ROLL,
    UNIT_SIZE,
    TimerLogEnd,
    TimerLogWalk,
    TimerUnit,
    decode_unit,
    encode_blank,
)
from skyrocket.format.timer_wheel import (
    SLOT,
    SLOT_SIZE,
    WHEEL_SIZE,
    Slot,
    decode_slot,
    parked_time_ms,
    parking,
    roll_window_slots,
    slot_index,
    used_slots,
)
from skyrocket.model.data_version import DataVersion
from tests.golden_store import GOLDEN_STORES, GoldenStore, Line
from tests.raw_store import RawStore

TIMER_STORES = [store for store in GOLDEN_STORES if (store.path / "timer.jsonl").exists()]
EVERY_TIMER_STORE = pytest.mark.parametrize("golden", TIMER_STORES, ids=str, indirect=True)
TIMER_LOG_FILE_SIZE = 1040
ROLL_WINDOWS = {"timer-roll": 12}

I32 = st.integers(-(1 << 31), (1 << 31) - 1)
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
UNITS = st.builds(TimerUnit, I64, st.integers(1, 15), I64, I32, I64, I32, I32, I64)

UNIT = TimerUnit(-1, MAGIC_DEFAULT, 1_700_000_000_000, 3000, 6947, 380, 1148717942)


def encode_unit(unit: TimerUnit) -> bytes:
    return timer_log.UNIT.pack(UNIT_SIZE, *unit)


def encode_slot(slot: Slot) -> bytes:
    return SLOT.pack(slot.time_ms // 1000, *slot[1:])


def lines_of(golden: GoldenStore, kind: str) -> list[Line]:
    return [line for line in golden.lines("timer") if line["kind"] == kind]


def unit_of(line: Line) -> TimerUnit:
    names = ("previous", "magic", "writeTime", "delay", "physicalOffset", "size", "topicHash", "reserved")
    return TimerUnit._make(line[name] for name in names)


def wheel_of(golden: GoldenStore) -> bytes:
    """The wheel file; it is large, so the shared fixture leaves it out."""
    with tarfile.open(golden.path / "store.tar.xz") as archive:
        file = archive.extractfile("./timerwheel")
        assert file is not None
        return file.read()


# -- timer log ---------------------------------------------------------------------------------------


@EVERY_TIMER_STORE
def test_a_walk_finds_every_unit_and_blank_of_a_golden_timer_log(golden: GoldenStore, golden_files: RawStore) -> None:
    units: list[tuple[int, TimerUnit]] = []
    blanks: list[tuple[int, int]] = []
    files = [(int(name), data) for name, data in golden_files.folder("timerlog")]
    for start, data in files:
        walk = TimerLogWalk(data)
        units += [(start + position, unit) for position, unit in walk]
        if walk.end is TimerLogEnd.BLANK:
            blanks.append((start + walk.position, len(data) - walk.position))
        else:
            assert (start, walk.end) == (files[-1][0], TimerLogEnd.ZERO)
    assert units == [(line["position"], unit_of(line)) for line in lines_of(golden, "unit")]
    assert blanks == [(line["position"], line["size"]) for line in lines_of(golden, "blank")]


@EVERY_TIMER_STORE
def test_golden_timer_log_files_are_written_byte_for_byte(golden: GoldenStore, golden_files: RawStore) -> None:
    for _, data in golden_files.folder("timerlog"):
        walk = TimerLogWalk(data)
        written = b"".join(encode_unit(unit) for _, unit in walk)
        if walk.end is TimerLogEnd.BLANK:
            written += encode_blank(len(data) - walk.position)
        assert written.ljust(len(data), b"\0") == data


def test_a_unit_has_52_bytes_and_a_blank_16() -> None:
    assert (UNIT_SIZE, BLANK_SIZE) == (52, 16)


@given(UNITS)
def test_a_unit_is_read_back_as_it_was_written(unit: TimerUnit) -> None:
    assert decode_unit(encode_unit(unit)) == unit


def test_the_magic_tells_what_becomes_of_a_message() -> None:
    assert (UNIT.rolls, UNIT.deletes, UNIT.slot_time_ms) == (False, False, 1_700_000_003_000)
    both = UNIT._replace(magic=MAGIC_DEFAULT | MAGIC_ROLL | MAGIC_DELETE)
    assert (both.magic, both.rolls, both.deletes) == (7, True, True)


@pytest.mark.parametrize(
    ("tail", "end"),
    [
        (b"", TimerLogEnd.LIMIT),
        (bytes(200), TimerLogEnd.ZERO),
        (bytes(10), TimerLogEnd.ZERO),
        (encode_blank(16), TimerLogEnd.BLANK),
        (encode_blank(52) + bytes(36), TimerLogEnd.BLANK),
        (encode_blank(52) + b"\xff" * 36, TimerLogEnd.BLANK),
        (encode_unit(UNIT)[:51], TimerLogEnd.DAMAGED),
        (encode_unit(UNIT._replace(magic=16)), TimerLogEnd.DAMAGED),
        (encode_unit(UNIT._replace(magic=-1)), TimerLogEnd.DAMAGED),
        (b"\0\0\0\x33" + encode_unit(UNIT)[4:], TimerLogEnd.DAMAGED),
        (b"\xff" * 7, TimerLogEnd.DAMAGED),
    ],
)
def test_a_walk_stops_behind_the_last_good_unit_and_says_why(tail: bytes, end: TimerLogEnd) -> None:
    walk = TimerLogWalk(encode_unit(UNIT) * 2 + tail)
    assert [position for position, _ in walk] == [0, 52]
    assert (walk.position, walk.end) == (104, end)


def test_a_walk_keeps_within_its_limits() -> None:
    walk = TimerLogWalk(encode_unit(UNIT) * 4, position=52, limit=156)
    assert [position for position, _ in walk] == [52, 104]
    assert (walk.position, walk.end) == (156, TimerLogEnd.LIMIT)


@given(st.binary(max_size=200))
def test_a_walk_over_garbage_always_ends(garbage: bytes) -> None:
    walk = TimerLogWalk(garbage)
    assert len(list(walk)) <= len(garbage) // UNIT_SIZE
    assert walk.position <= len(garbage)


def test_there_is_no_unit_outside_the_buffer() -> None:
    data = encode_unit(UNIT)
    assert decode_unit(data, -1) is None
    for end in range(len(data)):
        assert decode_unit(data[:end]) is None


# -- timer wheel -------------------------------------------------------------------------------------


@EVERY_TIMER_STORE
def test_every_slot_of_a_golden_wheel_is_read_and_written(golden: GoldenStore) -> None:
    wheel = wheel_of(golden)
    assert len(wheel) == WHEEL_SIZE
    slots = list(used_slots(wheel))
    assert slots == [
        (line["index"], Slot(line["timeMs"], line["firstPos"], line["lastPos"], line["num"], line["magic"]))
        for line in lines_of(golden, "slot")
    ]
    for index, slot in slots:
        assert slot_index(slot.time_ms) == index
        assert encode_slot(slot) == wheel[index * SLOT_SIZE : (index + 1) * SLOT_SIZE]


@EVERY_TIMER_STORE
def test_chaining_the_units_of_a_golden_log_gives_its_wheel(golden: GoldenStore) -> None:
    slots: dict[int, Slot] = {}
    for line in lines_of(golden, "unit"):
        unit = unit_of(line)
        slot = slots.get(unit.slot_time_ms, Slot(unit.slot_time_ms))
        assert unit.previous == slot.last_position
        first = line["position"] if slot.is_empty else slot.first_position
        messages = slot.messages + (-1 if unit.deletes else 1)
        slots[unit.slot_time_ms] = Slot(unit.slot_time_ms, first, line["position"], messages)
    stored = {line["timeMs"]: (line["firstPos"], line["lastPos"], line["num"]) for line in lines_of(golden, "slot")}
    assert {time_ms: slot[1:4] for time_ms, slot in slots.items()} == stored


@EVERY_TIMER_STORE
def test_golden_units_lie_in_the_slots_that_the_rule_gives(golden: GoldenStore, golden_lines: list[Line]) -> None:
    due_ms = {
        line["physicalOffset"]: int(line["properties"]["TIMER_OUT_MS"])
        for line in golden_lines
        if "TIMER_OUT_MS" in line.get("properties", {})
    }
    window = roll_window_slots(ROLL_WINDOWS.get(golden.name, 172_800))
    for line in lines_of(golden, "unit"):
        unit = unit_of(line)
        parked = parking(due_ms[unit.physical_offset], unit.write_time_ms, window)
        assert (parked.slot_time_ms, parked.rolls) == (unit.slot_time_ms, unit.rolls)


@EVERY_TIMER_STORE
def test_golden_records_are_parked_at_the_step_before_their_delivery(
    golden: GoldenStore, golden_lines: list[Line]
) -> None:
    for line in golden_lines:
        properties = line.get("properties", {})
        if line.get("topic") == "rmq_sys_wheel_timer" and "TIMER_DELIVER_MS" in properties:
            assert int(properties["TIMER_OUT_MS"]) == parked_time_ms(int(properties["TIMER_DELIVER_MS"]))


@pytest.mark.parametrize(("deliver_ms", "parked_ms"), [(10_000, 9000), (10_001, 10_000), (10_999, 10_000)])
def test_a_delivery_is_parked_at_the_step_before_it(deliver_ms: int, parked_ms: int) -> None:
    assert parked_time_ms(deliver_ms) == parked_ms


@pytest.mark.parametrize(
    ("due_steps", "slot_steps", "rolls"),
    [(11, 11, False), (12, 6, True), (15, 6, True), (16, 12, True), (500, 12, True)],
)
def test_what_lies_beyond_the_window_rolls(due_steps: int, slot_steps: int, rolls: bool) -> None:
    write_ms = 1_700_000_000_000
    parked = parking(write_ms + due_steps * 1000, write_ms, window_slots=12)
    assert parked == (write_ms + slot_steps * 1000, rolls)


@given(st.integers(0, 10_000_000), st.integers(2, 604_740), st.sampled_from([100, 500, 1000]))
def test_a_roll_lands_on_a_step_before_the_due_time(delay: int, window: int, precision_ms: int) -> None:
    write_ms = 1_700_000_000_000
    due_ms = write_ms + delay * precision_ms
    parked = parking(due_ms, write_ms, window, precision_ms)
    assert parked.slot_time_ms % precision_ms == 0
    assert write_ms <= parked.slot_time_ms <= due_ms
    assert parked.slot_time_ms - write_ms <= window * precision_ms


@pytest.mark.parametrize(("setting", "slots"), [(1, 604_740), (2, 2), (604_740, 604_740), (604_741, 604_740)])
def test_a_roll_window_out_of_bounds_becomes_the_largest(setting: int, slots: int) -> None:
    assert roll_window_slots(setting) == slots


def test_a_fresh_wheel_has_only_empty_slots() -> None:
    wheel = bytes(SLOT_SIZE * 8)
    assert list(used_slots(wheel)) == []
    assert decode_slot(wheel, 5) == Slot(0, 0, 0)


@given(st.integers(0, 1 << 40), I64, I64, I32, I32)
def test_a_slot_is_read_back_as_it_was_written(time: int, first: int, last: int, messages: int, magic: int) -> None:
    slot = Slot(time * 1000, first, last, messages, magic)
    assert decode_slot(bytes(SLOT_SIZE) + encode_slot(slot), 1) == slot


def test_a_wheel_that_is_cut_off_is_refused() -> None:
    with pytest.raises(DataError, match="slot 1 lies outside"):
        decode_slot(bytes(SLOT_SIZE * 2 - 1), 1)
    with pytest.raises(DataError):
        decode_slot(bytes(SLOT_SIZE), -1)


# -- timer checkpoint --------------------------------------------------------------------------------


@EVERY_TIMER_STORE
def test_a_golden_timer_checkpoint_is_read_and_written_byte_for_byte(
    golden: GoldenStore, golden_files: RawStore
) -> None:
    page = golden_files.files["config/timercheck"]
    (line,) = lines_of(golden, "checkpoint")
    checkpoint = decode_timer_checkpoint(page)
    assert checkpoint == TimerCheckpoint(
        line["lastReadTimeMs"],
        line["lastTimerLogFlushPos"],
        line["lastTimerQueueOffset"],
        line["masterTimerQueueOffset"],
        DataVersion(line["stateVersion"], line["counter"], line["timestamp"]),
    )
    assert encode_timer_checkpoint(checkpoint) == page
    assert len(page) == SIZE


VERSIONS = st.builds(DataVersion, I64, I64, I64)
BEGUN = st.lists(st.tuples(I64, I64), max_size=MOST_BEGUN).map(tuple)


@given(st.builds(TimerCheckpoint, I64, I64, I64, I64, VERSIONS, BEGUN))
def test_a_timer_checkpoint_is_read_back_from_page_and_wire_form(checkpoint: TimerCheckpoint) -> None:
    page = encode_timer_checkpoint(checkpoint)
    assert decode_timer_checkpoint(page) == checkpoint
    assert decode_timer_checkpoint(page[:WIRE_SIZE]) == checkpoint._replace(begun=())


@given(st.integers(0, 55) | st.integers(64, 103), st.integers(1, 255))
def test_steps_that_were_begun_count_only_with_the_rest_of_the_page(at: int, flips: int) -> None:
    page = bytearray(encode_timer_checkpoint(TimerCheckpoint(1, 2, 3, 4, DataVersion(5, 6, 7), ((8, 9), (10, 11)))))
    page[at] ^= flips
    assert decode_timer_checkpoint(bytes(page)).begun == ()


def test_a_timer_checkpoint_without_version_is_read_and_a_shorter_one_refused() -> None:
    page = encode_timer_checkpoint(TimerCheckpoint(1, 2, 3, 4, DataVersion(5, 6, 7)))
    for end in range(SIZE):
        if end < 32:
            with pytest.raises(DataError, match=f"a timer checkpoint of {end} bytes"):
                decode_timer_checkpoint(page[:end])
        else:
            assert decode_timer_checkpoint(page[:end])[:4] == (1, 2, 3, 4)
