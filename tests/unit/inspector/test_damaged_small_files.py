"""Damage in checkpoint, configuration and timer files."""

from struct import Struct

import pytest

from skyrocket.format.checkpoint import Checkpoint, encode_checkpoint
from skyrocket.format.timer_log import UNIT_SIZE
from skyrocket.format.timer_wheel import SLOT_SIZE, used_slots
from skyrocket.inspector.findings import FindingKind, Severity
from tests.unit.inspector.conftest import Copies
from tests.unit.inspector.damage import DamagedStore

I64 = Struct(">q")


@pytest.mark.requirement("A023")
@pytest.mark.parametrize("position", [0, 8, 16])
@pytest.mark.parametrize(("byte", "bit"), [(0, 7), (1, 3)])
def test_a_checkpoint_time_that_no_record_has_is_found(
    position: int, byte: int, bit: int, small_store: DamagedStore
) -> None:
    small_store.flip("checkpoint", position + byte, bit)
    finding = small_store.assert_found(FindingKind.CHECKPOINT_WRONG, "checkpoint")
    assert finding.position in (0, position)


@pytest.mark.parametrize("position", [24, 32])
def test_a_checkpoint_offset_behind_the_end_is_found(position: int, small_store: DamagedStore) -> None:
    small_store.write("checkpoint", position, I64.pack(1 << 40))
    assert small_store.assert_found(FindingKind.CHECKPOINT_WRONG, "checkpoint").position == position


@pytest.mark.parametrize("position", range(0, 40, 5))
def test_any_flip_in_a_sealed_checkpoint_is_found(position: int, small_store: DamagedStore) -> None:
    small_store.replace("checkpoint", encode_checkpoint(Checkpoint(1_700_000_000_000, 1_700_000_000_000, 0, 0, 0, 100)))
    small_store.flip("checkpoint", position)
    small_store.assert_found(FindingKind.CHECKPOINT_WRONG, "checkpoint")


def test_a_truncated_checkpoint_is_found(small_store: DamagedStore) -> None:
    small_store.replace("checkpoint", small_store.read("checkpoint")[:100])
    small_store.assert_found(FindingKind.CHECKPOINT_WRONG, "checkpoint")


def test_a_missing_checkpoint_is_only_a_warning(small_store: DamagedStore) -> None:
    small_store.delete("checkpoint")
    result = small_store.verify()
    assert not result.has_problems()
    assert FindingKind.CHECKPOINT_MISSING in {finding.kind for finding in result.findings}


@pytest.mark.parametrize("name", ["topics.json", "consumerOffset.json", "delayOffset.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_a_config_file_that_cannot_be_read_is_found(name: str, damage: str, small_store: DamagedStore) -> None:
    data = small_store.read(f"config/{name}")
    damaged = {"cut": data[: len(data) // 2], "flip": bytes([data[0] ^ 4]) + data[1:], "empty": b""}[damage]
    small_store.replace(f"config/{name}", damaged)
    small_store.assert_found(FindingKind.CONFIG_UNREADABLE, f"config/{name}")


def test_a_backup_that_cannot_be_read_is_only_a_warning(small_store: DamagedStore) -> None:
    small_store.replace("config/topics.json.bak", b"{")
    result = small_store.verify()
    assert not result.has_problems()
    assert ("config/topics.json.bak", Severity.WARNING) in {(f.file, f.severity) for f in result.findings}


def test_a_consumer_offset_behind_the_end_of_its_queue_is_found(copy_of: Copies) -> None:
    store = copy_of("4.9.7", "clean")
    data = store.read("config/consumerOffset.json")
    store.replace(
        "config/consumerOffset.json",
        data.replace(b'"TopicOrder@GroupOrderly":{0:72', b'"TopicOrder@GroupOrderly":{0:73'),
    )
    finding = store.assert_found(FindingKind.OFFSET_OUT_OF_RANGE, "config/consumerOffset.json")
    assert "stands at 73 of TopicOrder/0, which reaches from 0 to 72" in finding.what


def test_a_consumer_offset_below_the_oldest_message_is_a_note(copy_of: Copies) -> None:
    store = copy_of("4.9.7", "expired")
    text = b'{"offsetTable":{"TopicOrder@G":{0:1}}}'
    store.replace("config/consumerOffset.json", text)
    findings = [f for f in store.verify().findings if f.kind is FindingKind.OFFSET_OUT_OF_RANGE]
    assert [finding.severity for finding in findings] == [Severity.NOTE]


def test_a_topic_that_is_not_listed_is_a_warning(store: DamagedStore) -> None:
    data = store.read("config/topics.json")
    store.replace("config/topics.json", data.replace(b'"TopicOrder":', b'"TopicOther":'))
    result = store.verify()
    assert not result.has_problems()
    unlisted = [finding for finding in result.findings if finding.kind is FindingKind.TOPIC_UNLISTED]
    assert {finding.file for finding in unlisted} == {"config/topics.json"}


@pytest.mark.parametrize(
    ("field", "byte"), [("previous", 11), ("delay", 26), ("physical offset", 34), ("size", 39), ("topic hash", 43)]
)
def test_damage_in_a_timer_unit_is_found(field: str, byte: int, copy_of: Copies) -> None:
    store = copy_of("5.4.0", "timer-roll")
    file = store.files("timerlog")[1]
    store.flip(file, 3 * UNIT_SIZE + byte, 2)
    store.assert_found(FindingKind.TIMER_LOG_WRONG, file)


@pytest.mark.parametrize("byte", [0, 3, 13])
def test_a_timer_unit_that_is_none_is_found(byte: int, copy_of: Copies) -> None:
    store = copy_of("5.4.0", "timer-roll")
    file = store.files("timerlog")[1]
    store.flip(file, 3 * UNIT_SIZE + byte, 1)
    store.assert_found(FindingKind.TIMER_LOG_WRONG, file)


@pytest.mark.parametrize(("field", "byte"), [("time", 6), ("first", 15), ("last", 23)])
def test_damage_in_a_wheel_slot_is_found(field: str, byte: int, copy_of: Copies) -> None:
    store = copy_of("5.4.0", "clean")
    index, _ = next(iter(used_slots(store.read("timerwheel"))))
    store.flip("timerwheel", index * SLOT_SIZE + byte)
    store.assert_found(FindingKind.TIMER_WHEEL_WRONG, "timerwheel")


def test_a_wheel_of_the_wrong_size_is_found(copy_of: Copies) -> None:
    store = copy_of("5.4.0", "clean")
    store.replace("timerwheel", store.read("timerwheel")[:-32])
    store.assert_found(FindingKind.FILE_SIZE, "timerwheel")


def test_a_timer_checkpoint_that_is_ahead_is_found(copy_of: Copies) -> None:
    store = copy_of("5.4.0", "clean")
    store.write("config/timercheck", 16, I64.pack(10_000))
    store.assert_found(FindingKind.CHECKPOINT_WRONG, "config/timercheck")
