"""One index file: its shape, header, slots and entries.

The shape (how many slots, how many entries) is a setting of the broker and is written nowhere. Where the settings
that were given do not fit the file's size, it is found out from the file: only the right number of slots makes
every chain fit, and the header names the offset that the first entry must hold.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyrocket.format import index_layout as layout
from skyrocket.format.dtypes import Int64s
from skyrocket.offline.offset_files import read_at

_SMALL_FILE = 1 << 20  # up to this size every possible number of slots is tried


class IndexShape(NamedTuple):
    """How many slots and entries a file was made with."""

    slots: int
    entries: int

    @property
    def file_size(self) -> int:
        return layout.file_size(self.slots, self.entries)


@dataclass(frozen=True, slots=True)
class IndexContent:
    """The used part of an index file; entry `numbers[i]` is `entries[i]`, the first number is 1."""

    path: Path
    shape: IndexShape
    header: layout.IndexHeader
    slots: NDArray[np.int32]
    entries: NDArray[np.void]

    @property
    def physical_offsets(self) -> Int64s:
        return self.entries["physical_offset"].astype(np.int64)

    @property
    def hashes(self) -> Int64s:
        return self.entries["key_hash"].astype(np.int64)


class ExpectedChains(NamedTuple):
    """What slots and previous-entry numbers must be, given the hashes in order."""

    slots: Int64s
    previous: Int64s
    used_slots: int


def read_index_file(path: Path, shape: IndexShape) -> IndexContent:
    """Header, slots and all entries up to the last that is not zero; the header's own count is not trusted."""
    header = read_header(path)
    slots = np.frombuffer(read_at(path, layout.HEADER_SIZE, layout.SLOT_SIZE * shape.slots), dtype=layout.SLOT_DTYPE)
    entries = _entries(path, shape, header.next_number)
    return IndexContent(path, shape, header, slots.astype(np.int32), entries)


def read_header(path: Path) -> layout.IndexHeader:
    """The header; zeros where the file is too short."""
    return layout.decode_header(read_at(path, 0, layout.HEADER_SIZE).ljust(layout.HEADER_SIZE, b"\0"))


def _entries(path: Path, shape: IndexShape, next_number: int) -> NDArray[np.void]:
    """Entries from number 1 on, without the zeros at the end."""
    start = layout.entry_position(shape.slots, 1)
    room = shape.entries - 1
    pieces = []
    first, count = 0, min(max(next_number, 64), room)  # a little more than the header says, to see what it hides
    while first < room:
        data = read_at(path, start + first * layout.ENTRY_SIZE, min(count, room - first) * layout.ENTRY_SIZE)
        piece = np.frombuffer(data[: len(data) // layout.ENTRY_SIZE * layout.ENTRY_SIZE], dtype=layout.ENTRY_DTYPE)
        pieces.append(piece)
        used = _used(piece)
        if not len(used) or used[-1] + 1 < len(piece) // 2:
            break
        first += len(piece)
        if not len(piece):
            break
    entries = np.concatenate(pieces) if pieces else np.empty(0, dtype=layout.ENTRY_DTYPE)
    used = _used(entries)
    return entries[: int(used[-1]) + 1] if len(used) else entries[:0]


def _used(entries: NDArray[np.void]) -> NDArray[np.int64]:
    return np.flatnonzero((entries["key_hash"] != 0) | (entries["physical_offset"] != 0) | (entries["previous"] != 0))


def expected_chains(hashes: Int64s, slot_count: int) -> ExpectedChains:
    """Replay all puts at once: an entry's predecessor is the latest earlier one in its slot."""
    slots = np.zeros(slot_count, dtype=np.int64)
    previous, used_slots = layout.chain_entries(hashes % slot_count, slots, 1)
    return ExpectedChains(slots, previous, used_slots)


def shapes_of(paths: list[Path], configured: IndexShape) -> dict[Path, tuple[IndexShape | None, bool]]:
    """The shape of each file, and whether it had to be inferred; files of one size have one shape."""
    by_size: dict[int, list[Path]] = {}
    for path in paths:
        by_size.setdefault(path.stat().st_size, []).append(path)
    return {path: shape for alike in by_size.values() for shape in [infer_shape(alike, configured)] for path in alike}


def infer_shape(paths: list[Path], configured: IndexShape) -> tuple[IndexShape | None, bool]:
    """The shape of files of one size, and whether it had to be inferred."""
    size = paths[0].stat().st_size
    if configured.file_size == size:
        return configured, False
    best: tuple[float, IndexShape] | None = None
    for path in sorted(paths, key=lambda path: -read_header(path).next_number)[:4]:
        for shape in _possible_shapes(path, size):
            score = _consistency(read_index_file(path, shape))
            if score == 1.0:
                return shape, True
            if best is None or score > best[0]:
                best = (score, shape)
    return (best[1], True) if best is not None and best[0] > 0.5 else (None, True)


def _possible_shapes(path: Path, size: int) -> Iterator[IndexShape]:
    """Shapes of this size in which the first entry holds the offset that the header names; else all shapes."""
    room = size - layout.HEADER_SIZE
    if room < layout.SLOT_SIZE + 2 * layout.ENTRY_SIZE or room % layout.SLOT_SIZE:
        return
    header = read_header(path)
    data = read_at(path, 0, min(size, _SMALL_FILE * 64))
    wanted = header.begin_physical_offset.to_bytes(8, "big", signed=True)
    likely = []
    if header.begin_physical_offset > 0:
        at = data.find(wanted, layout.HEADER_SIZE)
        while at >= 0:
            slots, rest = divmod(at - 4 - layout.ENTRY_SIZE - layout.HEADER_SIZE, layout.SLOT_SIZE)
            if rest == 0 and slots > 0 and (room - slots * layout.SLOT_SIZE) % layout.ENTRY_SIZE == 0:
                likely.append(slots)
            at = data.find(wanted, at + 1)
    for slots in likely:
        yield IndexShape(slots, (room - slots * layout.SLOT_SIZE) // layout.ENTRY_SIZE)
    if size <= _SMALL_FILE:
        for slots in range(room // layout.SLOT_SIZE % 5 or 5, room // layout.SLOT_SIZE - 9, 5):
            yield IndexShape(slots, (room - slots * layout.SLOT_SIZE) // layout.ENTRY_SIZE)


def _consistency(file: IndexContent) -> float:
    """How well slots and chains fit the hashes, from 0 to 1."""
    if not len(file.entries) or (file.hashes < 0).any():
        return 0.0
    expected = expected_chains(file.hashes, file.shape.slots)
    right = int((file.slots == expected.slots).sum()) + int((file.entries["previous"] == expected.previous).sum())
    # Empty slots agree with every shape: only what is used counts.
    empty = int(((file.slots == 0) & (expected.slots == 0)).sum())
    return (right - empty) / (len(file.slots) + len(file.entries) - empty)
