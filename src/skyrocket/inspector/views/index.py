"""Index files, and what they know about one key."""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from skyrocket.format.index_layout import index_hash, key_text
from skyrocket.inspector.views.view import Column, Row, View
from skyrocket.offline.index_files import IndexShape, read_header, read_index_file, shapes_of
from skyrocket.offline.store_files import StoreFiles

_FILES = (
    Column("file", "file"),
    Column("entries", "entries", "number"),
    Column("usedSlots", "used slots", "number"),
    Column("beginTimestamp", "from", "time"),
    Column("endTimestamp", "to", "time"),
    Column("beginPhysicalOffset", "first record", "number"),
    Column("endPhysicalOffset", "last record", "number"),
    Column("shape", "slots × entries"),
)
_HITS = (
    Column("file", "file"),
    Column("entry", "entry", "number"),
    Column("physicalOffset", "physical offset", "number"),
    Column("timestamp", "stored (to the second)", "time"),
)


def index_files(store: StoreFiles, configured: IndexShape) -> View:
    """The headers of all files."""
    return View("index-file", "Index files", _FILES, list(_file_rows(store, configured)), when_empty="none")


def lookup(store: StoreFiles, configured: IndexShape, topic: str, key: str, limit: int) -> View:
    """Where the index finds a key of a topic, newest first; another key may have the same hash."""
    rows = _hits(store, configured, index_hash(key_text(topic, key)))
    rows = islice(rows, limit) if limit else rows
    return View("index-hit", f"Index entries for {key!r} of {topic}", _HITS, rows, when_empty="none")


def _file_rows(store: StoreFiles, configured: IndexShape) -> Iterator[Row]:
    for path, (shape, _) in sorted(shapes_of(store.index_files, configured).items()):
        header = read_header(path)
        yield {
            "file": path.name,
            "entries": header.next_number - 1,
            "usedSlots": header.used_slots,
            "beginTimestamp": header.begin_timestamp,
            "endTimestamp": header.end_timestamp,
            "beginPhysicalOffset": header.begin_physical_offset,
            "endPhysicalOffset": header.end_physical_offset,
            "shape": f"{shape.slots} × {shape.entries}" if shape is not None else "unknown",
        }


def _hits(store: StoreFiles, configured: IndexShape, wanted: int) -> Iterator[Row]:
    for path, (shape, _) in sorted(shapes_of(store.index_files, configured).items(), reverse=True):
        if shape is None:
            continue
        file = read_index_file(path, shape)
        for at in reversed(np.flatnonzero(file.hashes == wanted)):
            entry = file.entries[at]
            yield {
                "file": path.name,
                "entry": int(at) + 1,
                "physicalOffset": int(entry["physical_offset"]),
                "timestamp": file.header.begin_timestamp + 1000 * int(entry["seconds"]),
            }
