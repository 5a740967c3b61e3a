"""A recovery that builds more queue entries than it may hold in memory."""

import shutil

import pytest

from tests.unit.store.stores import Stores, message


def test_recovery_keeps_entries_that_it_wrote_out_long_before_the_end_of_the_log(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skyrocket.store.log_scan._BATCH", 5)
    store = stores.open()
    for number in range(60):
        assert store.put(message(queue_id=0 if number < 3 else 1)).ok
    store.dispatch()
    store.close()
    shutil.rmtree(stores.root / "store" / "consumequeue")

    again = stores.open(queue_buffer_bytes=200)  # entries of ten records: those of the first queue are soon in its file

    assert [again.max_offset("Orders", queue_id) for queue_id in (0, 1)] == [3, 57]
