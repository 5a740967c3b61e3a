"""Consume queues, and the entries of one."""

from collections.abc import Iterator

import numpy as np

from skyrocket.format.dispatch_claims import QueueName
from skyrocket.format.queue_entry import is_ext_address
from skyrocket.inspector.views.view import Column, Row, View
from skyrocket.offline.queue_files import BatchQueue, QueueExtension, SimpleQueue, open_queue, open_queues
from skyrocket.offline.store_files import StoreFiles

_QUEUES = (
    Column("topic", "topic"),
    Column("queueId", "queue", "number"),
    Column("type", "type"),
    Column("min", "min", "number"),
    Column("max", "max", "number"),
    Column("firstPhysicalOffset", "first record", "number"),
    Column("lastPhysicalOffset", "last record", "number"),
    Column("files", "files", "number"),
)
_ENTRIES = (
    Column("queueOffset", "queue offset", "number"),
    Column("physicalOffset", "physical offset", "number"),
    Column("size", "size", "number"),
    Column("tagsCode", "tags code", "number"),
    Column("messages", "messages", "number"),
)


def queues(store: StoreFiles, topic: str | None, queue_id: int | None) -> View:
    """All queues, or those of a topic."""
    rows = [
        _queue_row(store, name, queue)
        for name, queue in open_queues(store)
        if topic in (None, name.topic) and queue_id in (None, name.queue_id)
    ]
    return View("queue", "Consume queues", _QUEUES, rows, when_empty="none that fits")


def entries(store: StoreFiles, name: QueueName, from_offset: int, limit: int) -> View:
    """The entries of one queue; a limit of 0 means all."""
    queue = open_queue(store, name)
    rows = _entry_rows(store, name, queue, from_offset, limit) if queue is not None else iter(())
    return View("entry", f"Entries of {name}", _ENTRIES, rows, when_empty="none that fits")


def _queue_row(store: StoreFiles, name: QueueName, queue: SimpleQueue) -> Row:
    first, end = queue.written
    ends = [queue.read(number, 1) for number in (first, end - 1)] if end > first else []
    offsets = [int(entry[0]["physical_offset"]) for entry in ends if len(entry)]
    return {
        "topic": name.topic,
        "queueId": name.queue_id,
        "type": "batch" if isinstance(queue, BatchQueue) else "simple",
        "min": queue.min_offset(store.commit_log.start),
        "max": queue.max_offset,
        "firstPhysicalOffset": offsets[0] if offsets else None,
        "lastPhysicalOffset": offsets[-1] if offsets else None,
        "files": len(queue.files.files),
        "fileSize": queue.files.file_size,
    }


def _entry_rows(store: StoreFiles, name: QueueName, queue: SimpleQueue, from_offset: int, limit: int) -> Iterator[Row]:
    extension = QueueExtension(store.extensions.get(name))
    first, end = queue.written
    number = first if isinstance(queue, BatchQueue) else max(first, from_offset)
    shown = 0
    while number < end and (not limit or shown < limit):
        piece = queue.read(number, min(end - number, 1 << 16))
        if not len(piece):
            return
        for at, entry in enumerate(piece):
            row = _entry_row(number + at, entry, extension)
            if int(row["queueOffset"]) + int(row.get("messages", 1)) > from_offset:
                shown += 1
                yield row
            if shown == limit != 0:
                return
        number += len(piece)


def _entry_row(number: int, entry: np.void, extension: QueueExtension) -> Row:
    tags_code = int(entry["tags_code"])
    row: dict[str, object] = {
        "queueOffset": number,
        "physicalOffset": int(entry["physical_offset"]),
        "size": int(entry["size"]),
        "tagsCode": tags_code,
    }
    if is_ext_address(tags_code):
        unit = extension.unit(tags_code)
        row |= {"extAddress": tags_code, "tagsCode": unit.tags_code if unit is not None else None}
    if entry.dtype == BatchQueue.dtype:
        row |= {"queueOffset": int(entry["base_offset"]), "messages": int(entry["messages"])}
        row |= {"storeTimestamp": int(entry["store_timestamp"]), "entry": number}
    return row
