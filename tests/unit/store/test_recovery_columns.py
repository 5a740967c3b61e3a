"""What recovery builds from the log, thousands of records at a time; both ways are compared in tests/faults."""

import shutil

import pytest

from skyrocket.store.log_columns import LogColumns
from skyrocket.store.log_scan import LogScan
from tests.unit.store.stores import Stores, message


@pytest.mark.parametrize("by_columns", [True, False])
def test_recovery_keeps_entries_that_it_wrote_out_long_before_the_end_of_the_log(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, by_columns: bool
) -> None:
    monkeypatch.setattr(LogScan, "by_columns", by_columns)
    monkeypatch.setattr("skyrocket.store.log_columns.BATCH_RECORDS", 5)
    monkeypatch.setattr("skyrocket.store.log_scan._BATCH", 5)
    store = stores.open()
    for number in range(60):
        assert store.put(message(queue_id=0 if number < 3 else 1)).ok
    store.dispatch()
    store.close()
    shutil.rmtree(stores.root / "store" / "consumequeue")

    again = stores.open(queue_buffer_bytes=200)  # entries of ten records: those of the first queue are soon in its file

    assert [again.max_offset("Orders", queue_id) for queue_id in (0, 1)] == [3, 57]


def test_a_log_without_damage_is_walked_by_columns_alone(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[type] = []
    batches = LogScan.batches

    def watched(*args: object) -> object:
        for batch in batches(*args):  # type: ignore[arg-type]
            kinds.append(type(batch))
            yield batch

    monkeypatch.setattr(LogScan, "batches", watched)
    store = stores.open()
    for number in range(2000):  # a few files
        assert store.put(message(queue_id=number % 4)).ok
    store.dispatch()
    store.close()
    shutil.rmtree(stores.root / "store" / "consumequeue")

    again = stores.open()

    assert [again.max_offset("Orders", queue_id) for queue_id in range(4)] == [500] * 4
    assert set(kinds) == {LogColumns}
