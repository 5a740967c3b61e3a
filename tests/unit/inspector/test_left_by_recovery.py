"""What 4.9.7 leaves after it recovered a killed store with a damaged record, and the same damage in a closed store.

Its recovery ends the log before the record. The records behind stay, and so do their queue entries and those index
files that the checkpoint covers. tests/interop/test_inspect_after_recovery.py has it done by RocketMQ itself.
"""

import struct
from pathlib import Path

import pytest

from skyrocket.format import index_layout
from skyrocket.format.record import RecordHead
from skyrocket.inspector.findings import FindingKind
from skyrocket.store.message_store import MessageStore
from tests.golden_store import GoldenStore
from tests.unit.inspector.conftest import Copies, Unpacked
from tests.unit.inspector.damage import DamagedStore

_LOGICS_AT = 8


def closed(copy_of: Copies, logics_timestamp: int) -> DamagedStore:
    """The killed store as if RocketMQ had closed it when it had dispatched a record of this time."""
    store = copy_of("4.9.7", "killed")
    store.delete("abort")
    store.write("checkpoint", _LOGICS_AT, struct.pack(">q", logics_timestamp))
    *_, kept, incomplete = store.files("index")
    end = index_layout.decode_header(store.read(kept))
    seed = struct.pack(">qqqqii", *([end.end_timestamp] * 2), *([end.end_physical_offset] * 2), 0, 0)
    store.replace(incomplete, seed + bytes(len(store.read(incomplete)) - len(seed)))  # made, and never written
    return store


@pytest.fixture
def killed(unpacked: Unpacked) -> tuple[str, list[RecordHead]]:
    """The newest file of the log, and its records."""
    store = DamagedStore(unpacked("4.9.7", "killed"))
    newest = [file for file in store.files("commitlog") if any(store.read(file)[:4])][-1]
    return newest, store.log_records(newest)


def hurt(store: DamagedStore, newest: str, record: RecordHead) -> None:
    store.flip(newest, record.physical_offset - int(Path(newest).name) + 100)


def test_what_a_recovery_left_in_log_queues_and_index_is_no_damage(
    copy_of: Copies, killed: tuple[str, list[RecordHead]]
) -> None:
    newest, records = killed
    middle = len(records) // 2
    store = closed(copy_of, records[middle - 1].store_timestamp)
    hurt(store, newest, records[middle])

    result = store.verify()
    assert not result.has_problems(strict=True)
    assert result.extent.end == records[middle].physical_offset
    notes = {finding.kind for finding in result.findings}
    assert notes >= {FindingKind.STALE_BYTES, FindingKind.ENTRY_STALE, FindingKind.INDEX_ENTRY_STALE}


@pytest.mark.parametrize("place", [0.5, 0.95])
def test_the_same_damage_in_a_log_that_was_closed_behind_it_is_an_error(
    place: float, copy_of: Copies, killed: tuple[str, list[RecordHead]]
) -> None:
    newest, records = killed
    store = closed(copy_of, records[-2].store_timestamp)  # the last one was never dispatched
    damaged = records[int(len(records) * place)]
    hurt(store, newest, damaged)

    errors = {(finding.kind, finding.position) for finding in store.errors()}
    assert (FindingKind.RECORD_DAMAGED, damaged.physical_offset - int(Path(newest).name)) in errors


def test_damage_between_records_of_the_last_millisecond_is_an_error(
    copy_of: Copies, killed: tuple[str, list[RecordHead]]
) -> None:
    newest, records = killed
    last = records[-2].store_timestamp
    same = [record for record in records[:-1] if record.store_timestamp == last]
    assert len(same) > 2, "the flood stored many in a millisecond"
    store = closed(copy_of, last)
    behind = records[-1]
    store.write(newest, behind.physical_offset - int(Path(newest).name), bytes(behind.size))
    hurt(store, newest, same[1])
    store.write("checkpoint", 0, struct.pack(">q", last))  # closed in order: the log was flushed as far as the queues

    store.assert_found(FindingKind.RECORD_DAMAGED, newest)


def test_our_start_takes_the_end_that_rocketmq_gave_the_log_and_indexes_nothing_twice(
    copy_of: Copies, killed: tuple[str, list[RecordHead]]
) -> None:
    newest, records = killed
    middle = len(records) // 2
    end = records[middle].physical_offset
    store = closed(copy_of, records[middle - 1].store_timestamp)
    hurt(store, newest, records[middle])
    for file in store.files(""):
        store.replace(file, store.read(file))  # no links: a broker writes into its files

    opened = MessageStore(store.root, GoldenStore("4.9.7", "killed").config_of_broker(dispatch_thread=False))
    assert opened.open().end_offset == end
    opened.close()

    kept = store.path(f"skyrocket.cut/{end:020d}")
    assert any(kept.iterdir()), "what lay behind is kept"
    found = {finding.kind for finding in store.verify().findings}
    assert found <= {FindingKind.INDEX_SHAPE, FindingKind.STRAY_FILE}
