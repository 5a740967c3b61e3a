"""How many slots an index file has is found out from the file."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.format import index_layout as layout
from skyrocket.offline.index_files import IndexShape, expected_chains, infer_shape, read_index_file
from tests.unit.inspector.conftest import Unpacked

DEFAULT = IndexShape(5_000_000, 20_000_000)


def replayed(hashes: list[int], slots: int) -> tuple[list[int], list[int], int]:
    """Slots, previous numbers and used slots, by putting one entry after the other."""
    table, previous, used = [0] * slots, [], 0
    for number, key_hash in enumerate(hashes, 1):
        used += table[key_hash % slots] == 0
        previous.append(table[key_hash % slots])
        table[key_hash % slots] = number
    return table, previous, used


@pytest.mark.requirement("A020")
@given(st.lists(st.integers(0, 2**31 - 1), max_size=60), st.integers(1, 20))
def test_the_replay_of_a_whole_file_equals_one_put_after_the_other(hashes: list[int], slots: int) -> None:
    expected = expected_chains(np.array(hashes, dtype=np.int64), slots)
    assert (expected.slots.tolist(), expected.previous.tolist(), expected.used_slots) == replayed(hashes, slots)


def write_index_file(path: Path, shape: IndexShape, hashes: list[int], first_offset: int) -> None:
    slots, previous, used = replayed(hashes, shape.slots)
    entries = [(h, first_offset + 100 * i, 0, p) for i, (h, p) in enumerate(zip(hashes, previous, strict=True))]
    header = layout.HEADER.pack(1, 2, first_offset, entries[-1][1] if entries else 0, used, len(hashes) + 1)
    parts = [header, *(slot.to_bytes(4, "big") for slot in slots), bytes(layout.ENTRY_SIZE)]
    parts += [layout.ENTRY.pack(*entry) for entry in entries]
    path.write_bytes(b"".join(parts).ljust(shape.file_size, b"\0"))


@pytest.mark.parametrize(("slots", "entries"), [(500, 400), (7, 50), (123, 11), (1, 30), (1000, 200)])
@pytest.mark.parametrize("first_offset", [0, 5000])
def test_the_shape_is_inferred(slots: int, entries: int, first_offset: int, tmp_path: Path) -> None:
    shape, path = IndexShape(slots, entries), tmp_path / "20260101000000000"
    hashes = [(i * 7919 + 13) % 2**31 for i in range(entries - 2)]
    write_index_file(path, shape, hashes, first_offset)
    assert infer_shape([path], DEFAULT) == (shape, True)
    assert len(read_index_file(path, shape).entries) == entries - 2


def test_settings_that_fit_are_taken(unpacked: Unpacked) -> None:
    paths = sorted((unpacked("4.9.7", "ipv6") / "index").iterdir())
    assert infer_shape(paths, IndexShape(500, 400)) == (IndexShape(500, 400), False)


@pytest.mark.parametrize("size", [0, 39, 41, 1000, 10040])
def test_a_file_without_entries_or_of_an_odd_size_has_no_shape(size: int, tmp_path: Path) -> None:
    path = tmp_path / "20260101000000000"
    path.write_bytes(bytes(size))
    assert infer_shape([path], DEFAULT) == (None, True)
