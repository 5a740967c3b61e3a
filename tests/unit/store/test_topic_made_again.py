"""A topic that was deleted and made again, in a log that still has its older records; nothing but the log says so."""

import shutil

import pytest

from skyrocket.format.queue_entry import ENTRY
from skyrocket.store.log_scan import LogScan
from tests.unit.store.stores import ENTRIES_PER_FILE, TOPIC, Stores, put


@pytest.mark.parametrize("by_columns", [True, False])
@pytest.mark.parametrize("keeps_manifest", [True, False])
def test_its_older_records_do_not_come_back_however_often_the_log_is_walked(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, by_columns: bool, keeps_manifest: bool
) -> None:
    monkeypatch.setattr(LogScan, "by_columns", by_columns)
    root = stores.root / "store"
    store = stores.open()
    for number in range(10):
        put(store, b"%d" % number)
    put(store, queue_id=1)
    store.queues.by_key[TOPIC, 0].next_offset = 0
    newest = put(store, b"made again")
    store.close()
    shutil.rmtree(root / "consumequeue")
    (root / "skyrocket.manifest").unlink()
    other = root / "consumequeue" / TOPIC / "1"
    other.mkdir(parents=True)
    # An entry behind the log's end: recovery walks through the log a second time.
    (other / f"{0:020d}").write_bytes(ENTRY.pack(1 << 20, 100, 0).ljust(ENTRIES_PER_FILE * ENTRY.size, b"\0"))

    for _ in range(3):
        (root / "abort").touch()
        again = stores.open()
        assert again.max_offset(TOPIC, 0) == 1
        assert again.queues.by_key[TOPIC, 0].entry_place(0)[0] == newest.physical_offset
        assert again.max_offset(TOPIC, 1) == 1
        again.close()
        if not keeps_manifest:
            (root / "skyrocket.manifest").unlink()


def test_records_that_have_no_entries_when_their_queue_is_removed_get_none_in_its_files(stores: Stores) -> None:
    """Of the transient pool, or with SYNC_FLUSH: dispatch meets them when the topic is gone, or made again."""
    store = stores.open()
    put(store, b"old")
    store.dispatch()
    for body in (b"late", b"later"):
        put(store, body)
    store.removal.remove_topic(TOPIC)
    store.dispatch()
    store.queues.write_out()
    assert not (stores.root / "store" / "consumequeue" / TOPIC).exists()
    newest = put(store, b"made again")
    store.dispatch()
    store.queues.write_out()
    entries = (stores.root / "store" / "consumequeue" / TOPIC / "0" / f"{0:020d}").read_bytes()
    assert ENTRY.unpack_from(entries)[0] == newest.physical_offset
    assert not any(entries[ENTRY.size :])
