"""Files and folders that the store does not use: named, and refused where they hold what the broker needs."""

import logging
import struct

import pytest

from skyrocket.errors import CorruptFile
from tests.unit.store.stores import Stores, put


def test_unknown_files_are_named_in_one_line_and_left_alone(stores: Stores, caplog: pytest.LogCaptureFixture) -> None:
    stores.open().close()
    root = stores.root / "store"
    (root / "notes.txt").write_text("mine")
    (root / "another.txt").write_text("1")
    with caplog.at_level(logging.WARNING):
        stores.open()
    lines = [line for line in caplog.messages if "unknown files" in line]
    assert len(lines) == 1
    assert "another.txt, notes.txt" in lines[0]
    assert (root / "notes.txt").read_text() == "mine"


def test_a_store_of_rocketmq_has_no_unknown_files(stores: Stores, caplog: pytest.LogCaptureFixture) -> None:
    store = stores.open()
    put(store)
    store.close()
    for name in ("compaction", "rocksdbstore", "timerlog"):
        (stores.root / "store" / name).mkdir()
    with caplog.at_level(logging.WARNING):
        stores.open()
    assert "unknown files" not in caplog.text


@pytest.mark.parametrize(
    ("files", "is_named"),
    [
        ({"CURRENT": b"MANIFEST-000005\n", "000004.log": b"", "LOCK": b""}, False),
        ({"CURRENT": b"MANIFEST-000005\n", "000004.log": b"\x01"}, True),
        ({"CURRENT": b"MANIFEST-000005\n", "000009.sst": b"\x01"}, True),
    ],
)
def test_timers_and_transactions_in_rocksdb_are_named_when_there_are_any(
    stores: Stores, caplog: pytest.LogCaptureFixture, files: dict[str, bytes], is_named: bool
) -> None:
    stores.open().close()
    path = stores.root / "store" / "rocksdbstore"
    path.mkdir()
    for name, content in files.items():
        (path / name).write_bytes(content)
    with caplog.at_level(logging.WARNING):
        stores.open()
    assert any("timerRocksDBEnable" in line and str(path) in line for line in caplog.messages) is is_named


@pytest.mark.parametrize(
    ("directory", "setting"),
    [
        ("consumequeue", "storeType=defaultRocksDB"),
        ("config/rdb", "configManagerVersion=v2"),
        ("config/topics", "storeType=defaultRocksDB"),
        ("config/metadata", "useSingleRocksDBForAllConfigs=true"),
    ],
)
def test_a_store_in_rocksdb_is_refused_with_the_way_out(stores: Stores, directory: str, setting: str) -> None:
    stores.open().close()
    path = stores.root / "store" / directory
    path.mkdir(parents=True, exist_ok=True)
    (path / "CURRENT").write_text("MANIFEST-000005\n")
    with pytest.raises(CorruptFile, match="skyrocket convert") as refusal:
        stores.open()
    assert str(path) in str(refusal.value)
    assert setting in str(refusal.value)


def test_the_checkpoint_says_at_byte_40_up_to_which_record_queues_are_on_disk(stores: Stores) -> None:
    store = stores.open()
    put(store)
    second = put(store)
    store.close()
    page = (stores.root / "store" / "checkpoint").read_bytes()
    assert struct.unpack_from(">q", page, 40) == (second.physical_offset,)
