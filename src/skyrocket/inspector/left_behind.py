"""Where RocketMQ ended the log of a store that it then closed, when it left other bytes behind that place.

Its recovery cuts the log before a record that is not whole, and its queues with it, but the bytes stay: whole records
among them, which nobody can read any more and which the next messages overwrite by and by. They are no damage. What is
damaged in a log that was closed is still claimed by its queue, so the queues tell both apart.
"""

from skyrocket.errors import CorruptRecord
from skyrocket.format.record import BLANK, BLANK_SIZE, MAGIC_BLANK, decode_record
from skyrocket.offline.log_walk import LogReader, all_zero
from skyrocket.offline.offset_files import OffsetFiles
from skyrocket.offline.queue_files import open_queues
from skyrocket.offline.store_files import StoreFiles


def end_before_leftovers(store: StoreFiles, reader: LogReader) -> int | None:
    """The end of the log, if everything behind it is left from before a recovery; None when the log says it itself."""
    if store.unclean:
        return None
    end = _claimed_end(store)
    file = store.commit_log.file_of(end)
    if file is None or end in (file.offset, store.commit_log.start):
        return None
    head = store.commit_log.read(end, BLANK_SIZE)
    if len(head) < BLANK_SIZE or BLANK.unpack(head)[1] == MAGIC_BLANK or all_zero(file, end - file.offset):
        return None
    return None if _is_whole(reader.record_at(end)) else end


def log_until(log: OffsetFiles, end: int) -> OffsetFiles:
    """The log as if it had nothing behind a place."""
    shorter = OffsetFiles(log.directory)
    shorter.files = [
        file._replace(size=min(file.size, end - file.offset)) for file in shorter.files if file.offset < end
    ]
    return shorter


def _claimed_end(store: StoreFiles) -> int:
    """Behind the last record of which a queue knows."""
    ends = [0]
    for _, queue in open_queues(store):
        first, end = queue.written
        last = queue.read(end - 1, 1 if end > first else 0)
        ends += [int(entry["physical_offset"]) + int(entry["size"]) for entry in last]
    return max(ends)


def _is_whole(data: bytes) -> bool:
    try:
        return bool(data) and decode_record(memoryview(data), check_crc=True) is not None
    except CorruptRecord:
        return False
