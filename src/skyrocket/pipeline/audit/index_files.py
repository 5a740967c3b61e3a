"""The index files of a store: which keys of which records they hold, as arrays."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skyrocket.errors import ConfigError
from skyrocket.format.dtypes import Int64s
from skyrocket.format.index_layout import ENTRY_DTYPE, entry_position
from skyrocket.format.store_names import INDEX
from skyrocket.offline.index_files import read_header
from skyrocket.offline.store_files import index_paths


@dataclass(frozen=True, slots=True)
class IndexRange:
    """One file, and the log offsets between its first and its last entry."""

    path: str
    begin: int
    end: int  # of the last record, inclusive
    entries: int
    first_entry_at: int


def find_index_files(store: Path, slots: int) -> list[IndexRange]:
    """Those that hold anything, in the order of the log; the number of slots is a setting of the broker.

    Raises ConfigError where it cannot be that number.
    """
    found = []
    for path in index_paths(store / INDEX):
        header = read_header(path)
        if header.next_number > 1:
            needed, size = entry_position(slots, header.next_number), path.stat().st_size
            if needed > size:
                raise ConfigError(
                    f"{path} has {size:,} bytes, too few for {slots:,} slots and {header.next_number - 1:,} entries: "
                    "give the broker's maxHashSlotNum as --index-slots"
                )
            begin, end = header.begin_physical_offset, header.end_physical_offset
            found.append(IndexRange(str(path), begin, end, header.next_number - 1, entry_position(slots, 1)))
    return sorted(found, key=lambda each: each.begin)


def indexed_pairs(files: list[IndexRange], begin: int, end: int) -> NDArray[np.int64]:
    """Every (physical offset, hash) of records in [begin, end), as rows of two columns."""
    pieces = [np.empty((0, 2), np.int64)]
    for file in files:
        if file.begin < end and file.end >= begin:
            entries = np.memmap(file.path, ENTRY_DTYPE, "r", file.first_entry_at, (file.entries,))
            offsets = entries["physical_offset"].astype(np.int64)
            inside = (offsets >= begin) & (offsets < end)
            pieces.append(np.column_stack([offsets[inside], entries["key_hash"][inside].astype(np.int64)]))
    return np.concatenate(pieces)


def missing_from(wanted: Int64s, held: Int64s) -> Int64s:
    """Rows of `wanted` that `held` does not have (as often), in order; both hold (offset, hash)."""
    # One number per pair: hashes have 31 bits, offsets are counted from the smallest one.
    if not len(wanted):
        return wanted
    base = min(int(wanted[:, 0].min()), int(held[:, 0].min()) if len(held) else 1 << 62)
    ours, theirs = (_numbers(each, base) for each in (wanted, held))
    values, first, counts = np.unique(ours, return_index=True, return_counts=True)
    others, other_counts = np.unique(theirs, return_counts=True)
    places = np.searchsorted(others, values)
    held_counts = np.zeros(len(values), np.int64)
    known = places < len(others)
    known[known] = others[places[known]] == values[known]
    held_counts[known] = other_counts[places[known]]
    return wanted[first[counts > held_counts]]


def _numbers(pairs: Int64s, base: int) -> Int64s:
    return (pairs[:, 0] - base) << 31 | pairs[:, 1]
