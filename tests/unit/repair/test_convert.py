"""Stores whose topics, groups and offsets are in RocksDB, in each of RocketMQ's layouts."""

import json
from pathlib import Path

import pytest

from skyrocket.errors import StoreError
from skyrocket.repair.convert import convert
from tests.unit.store.stores import Stores, put

rocksdict = pytest.importorskip("rocksdict", reason="rocksdict is not installed (skyrocket[rocksdb])")

TOPIC = {"topicName": "Orders", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6, "attributes": {}}
GROUP = {"groupName": "g", "consumeEnable": True, "retryMaxTimes": 3}
Families = dict[str, dict[bytes, bytes]]


def write(path: Path, families: Families) -> None:
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    others = {name: rocksdict.Options(raw_mode=True) for name in families if name != "default"}
    database = rocksdict.Rdict(str(path), options=options, column_families=others)
    for name, items in families.items():
        part = database if name == "default" else database.get_column_family(name)
        for key, value in items.items():
            part[key] = value
    database.close()


def text(content: object) -> bytes:
    return json.dumps(content).encode()


def named(name: bytes) -> bytes:
    return len(name).to_bytes(2, "big") + name


SEPARATE: dict[str, Families] = {
    "config/topics": {"default": {b"Orders": text(TOPIC)}, "kvDataVersion": {b"kvDataVersionKey": text({})}},
    "config/subscriptionGroups": {"default": {b"g": text(GROUP)}},
    "config/consumerOffsets": {"default": {b"Orders@g": text({"offsetTable": {"0": 21, "3": 7}})}},
}
SINGLE: dict[str, Families] = {
    "config/metadata": {
        "default": {},
        "topic": {b"Orders": text(TOPIC)},
        "topicVersion": {b"v": text({})},
        "subscriptionGroup": {b"g": text(GROUP)},
        "consumerOffset": {b"Orders@g": text({"offsetTable": {"0": 21, "3": 7}})},
    }
}
OFFSET_KEY = b"\x01\x00\x01\x02" + named(b"g") + b"\x01" + named(b"Orders") + b"\x01"
VERSION_2: dict[str, Families] = {
    "config/rdb": {
        "default": {
            b"\x01\x00\x03": b"",
            b"\x01data_version": bytes(24),
            b"\x01\x00\x03\x02" + named(b"Orders"): b"\x01" + text(TOPIC),
            b"\x01\x00\x04\x02" + named(b"g"): b"\x01" + text(GROUP),
            OFFSET_KEY + (0).to_bytes(4, "big"): (21).to_bytes(8, "big"),
            OFFSET_KEY + (3).to_bytes(4, "big"): (7).to_bytes(8, "big"),
        }
    }
}


@pytest.mark.parametrize("layout", [SEPARATE, SINGLE, VERSION_2], ids=["separate", "single", "version 2"])
def test_topics_groups_and_offsets_become_json_files(tmp_path: Path, layout: dict[str, Families]) -> None:
    (tmp_path / "commitlog").mkdir()
    for directory, families in layout.items():
        (tmp_path / directory).mkdir(parents=True)
        write(tmp_path / directory, families)
    done = convert(tmp_path)
    assert done is not None
    assert (done.topics, done.groups, done.offsets) == (1, 1, 2)
    topics = json.loads((tmp_path / "config" / "topics.json").read_text())
    assert topics["topicConfigTable"]["Orders"]["readQueueNums"] == 4
    groups = json.loads((tmp_path / "config" / "subscriptionGroup.json").read_text())
    assert groups["subscriptionGroupTable"]["g"]["retryMaxTimes"] == 3
    offsets = (tmp_path / "config" / "consumerOffset.json").read_text()
    assert '"Orders@g"' in offsets
    assert "21" in offsets
    for directory in layout:
        assert not (tmp_path / directory).exists()
        assert (tmp_path / "skyrocket.converted" / directory / "CURRENT").exists()
    assert convert(tmp_path) is None


def test_queues_in_rocksdb_are_built_from_the_log(stores: Stores) -> None:
    store = stores.open()
    for number in range(30):
        put(store, b"%d" % number)
    store.close()
    root = stores.root / "store"
    for name in ("skyrocket.manifest", "checkpoint"):
        (root / name).unlink()
    (root / "consumequeue").rename(root / "queues-as-files")
    (root / "consumequeue").mkdir()
    write(root / "consumequeue", {"default": {b"k": b"v"}, "offset": {}})
    assert convert(root) is not None
    again = stores.open()
    assert again.max_offset("Orders", 0) == 30


def test_json_files_that_are_there_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "config" / "topics").mkdir(parents=True)
    write(tmp_path / "config" / "topics", SEPARATE["config/topics"])
    (tmp_path / "config" / "topics.json").write_text("{}")
    with pytest.raises(StoreError, match=r"topics\.json"):
        convert(tmp_path)
    assert (tmp_path / "config" / "topics.json").read_text() == "{}"
