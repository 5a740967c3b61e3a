"""The manifest and the checkpoint file: written, read, and not believed when damaged."""

import shutil
from pathlib import Path

import pytest

from skyrocket.format.checkpoint import SIZE, Checkpoint
from skyrocket.store.checkpoint_file import CheckpointFile
from skyrocket.store.manifest import Manifest, load_manifest, save_manifest
from tests.unit.store.stores import TOPIC, Stores, UnforcedDisk, bodies, put

FULL = Manifest(1234, True, {"T/0": [0, 5], "Müller/3": [400, 77]}, ["20251116043000123"])


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = str(tmp_path / "manifest")
    save_manifest(UnforcedDisk(), path, FULL)
    assert load_manifest(UnforcedDisk(), path) == FULL


def test_a_missing_or_damaged_manifest_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "manifest"
    assert load_manifest(UnforcedDisk(), str(path)) is None
    save_manifest(UnforcedDisk(), str(path), FULL)
    good = path.read_bytes()
    for position in range(len(good) - 1):
        damaged = bytearray(good)
        damaged[position] ^= 4
        path.write_bytes(damaged)
        assert load_manifest(UnforcedDisk(), str(path)) is None, position
    for length in range(len(good) - 1):
        path.write_bytes(good[:length])
        assert load_manifest(UnforcedDisk(), str(path)) is None, length


@pytest.mark.requirement("A017", "B025")
@pytest.mark.parametrize("lost", ["consumequeue", f"consumequeue/{TOPIC}/1", "index"])
def test_what_was_deleted_is_missed_and_rebuilt_from_the_log(stores: Stores, lost: str) -> None:
    store = stores.open()
    for number in range(30):
        put(store, b"%d" % number, queue_id=number % 2, properties={"KEYS": f"k{number}"})
    store.close()
    shutil.rmtree(Path(store.paths.root) / lost)

    store = stores.open()
    assert bodies(store.get(TOPIC, 1, 0)) == [b"%d" % number for number in range(1, 30, 2)]
    assert len(store.query(TOPIC, "k7")) == 1
    assert put(store, queue_id=1).queue_offset == 15


@pytest.mark.requirement("A023", "C098")
def test_checkpoint_values_never_go_back_and_are_written_when_they_changed(tmp_path: Path) -> None:
    disk = UnforcedDisk()
    path = tmp_path / "checkpoint"
    file = CheckpointFile(disk, str(path))
    assert file.load()
    file.advance(physic_timestamp=100, logics_timestamp=90, index_timestamp=80)
    file.advance(physic_timestamp=50, logics_timestamp=95)
    assert file.current == Checkpoint(100, 95, 80)
    file.flush()
    file.flush()
    assert disk.syncs == 1
    assert path.stat().st_size == SIZE
    again = CheckpointFile(disk, str(path))
    assert again.load()
    assert again.current == Checkpoint(100, 95, 80)


def test_a_damaged_checkpoint_counts_as_zeros(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    file = CheckpointFile(UnforcedDisk(), str(path))
    file.advance(physic_timestamp=1 << 40)
    file.flush()
    damaged = bytearray(path.read_bytes())
    damaged[3] ^= 1
    path.write_bytes(damaged)
    again = CheckpointFile(UnforcedDisk(), str(path))
    assert not again.load()
    assert again.current == Checkpoint()
